"""Find which of many held patterns overlap a new one, without comparing each with each.

Two patterns can only overlap if the literal names at the start of one are a prefix of those of the
other. So every held pattern is listed under its own literal names, where narrower patterns look,
and under each prefix of them, where wider patterns look. A query costs the depth of the path plus
the patterns listed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from interlock.errors import UsageError
from interlock.model.patterns.overlap import alternatives_overlap
from interlock.model.patterns.pattern import Alternative, parse

K = TypeVar("K")
V = TypeVar("V")
LiteralNames: TypeAlias = tuple[str, ...]
Listed: TypeAlias = dict[tuple[str, Alternative], None]


class HeldResource(NamedTuple):
    """A resource and the name of its holder."""

    resource: str
    holder: str


class OverlapIndex:
    """Paths and patterns, each with the name of its holder."""

    def __init__(self, *, fold_case: bool = False) -> None:
        self._fold_case = fold_case
        self._held: dict[str, HeldResource] = {}
        """By spelling: the holder of `a.py` may hold `./a.py` as well."""
        self._by_holder: dict[str, dict[str, None]] = {}
        self._at: dict[LiteralNames, Listed] = {}
        self._below: dict[LiteralNames, Listed] = {}

    def __len__(self) -> int:
        return len(self._held)

    def against(self, resource: str, holder: str | None) -> HeldResource | None:
        """Return a resource that overlaps this one and has a holder other than `holder`."""
        for (other, alternative), wanted in self._candidates(resource):
            held = self._held[other]
            if held.holder != holder and alternatives_overlap(alternative, wanted) is not None:
                return held
        return None

    def add(self, resource: str, holder: str) -> None:
        """Record that `holder` holds a resource."""
        if resource in self._held:
            return
        self._held[resource] = HeldResource(resource, holder)
        self._by_holder.setdefault(holder, {})[resource] = None
        for each in self._alternatives(resource):
            self._at.setdefault(each.prefix, {})[resource, each] = None
            for depth in range(len(each.prefix)):
                self._below.setdefault(each.prefix[:depth], {})[resource, each] = None

    def remove(self, resource: str, holder: str) -> bool:
        """Record that a resource is free again; False if this holder did not hold it."""
        if self._held.get(resource) != (resource, holder):
            return False
        del self._held[resource]
        _discard(self._by_holder, holder, resource)
        for each in self._alternatives(resource):
            _discard(self._at, each.prefix, (resource, each))
            for depth in range(len(each.prefix)):
                _discard(self._below, each.prefix[:depth], (resource, each))
        return True

    def of(self, holder: str) -> list[str]:
        """Return the resources of one holder."""
        return list(self._by_holder.get(holder, ()))

    def _candidates(self, resource: str) -> Iterator[tuple[tuple[str, Alternative], Alternative]]:
        """Yield what is held at the same literal names, above them and below them."""
        for wanted in self._alternatives(resource):
            prefix = wanted.prefix
            for depth in range(len(prefix) + 1):
                for found in self._at.get(prefix[:depth], ()):
                    yield found, wanted
            for found in self._below.get(prefix, ()):
                yield found, wanted

    def _alternatives(self, resource: str) -> tuple[Alternative, ...]:
        try:
            return parse(resource, fold_case=self._fold_case).alternatives
        except UsageError:
            # Not a path of a workspace: it overlaps only itself. No path contains a NUL.
            return (Alternative((f"\0{resource}",), ()),)


def _discard(index: dict[K, dict[V, None]], key: K, value: V) -> None:
    listed = index[key]
    listed.pop(value, None)
    if not listed:
        del index[key]

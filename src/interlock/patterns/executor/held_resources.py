"""Which of many resources overlap: found without comparing each with each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from interlock.errors import UsageError
from interlock.model.patterns.overlap import alternatives_overlap
from interlock.model.patterns.pattern import Alternative, parse

K = TypeVar("K")
V = TypeVar("V")
Names: TypeAlias = tuple[str, ...]
Listed: TypeAlias = dict[tuple[str, Alternative], None]


class HeldResource(NamedTuple):
    """A resource, and by whom it is held."""

    resource: str
    holder: str


class HeldResources:
    """Paths and patterns with their holders.

    Two patterns can only overlap if the literal names that one begins with are the beginning of
    the other's. So everything held is listed under its own literal names, and under each
    beginning of them for those who ask for something wider.
    """

    def __init__(self, *, fold_case: bool = False) -> None:
        self._fold_case = fold_case
        self._held: dict[str, HeldResource] = {}
        """By spelling: whoever holds `a.py` may hold `./a.py` as well."""
        self._of: dict[str, dict[str, None]] = {}
        """The resources of each holder."""
        self._at: dict[Names, Listed] = {}
        self._below: dict[Names, Listed] = {}

    def __len__(self) -> int:
        return len(self._held)

    def against(self, resource: str, holder: str | None) -> HeldResource | None:
        """What somebody else than `holder` holds of this resource."""
        for (other, alternative), wanted in self._near(resource):
            held = self._held[other]
            if held.holder != holder and alternatives_overlap(alternative, wanted) is not None:
                return held
        return None

    def add(self, resource: str, holder: str) -> None:
        """Note that it is held."""
        if resource in self._held:
            return
        self._held[resource] = HeldResource(resource, holder)
        self._of.setdefault(holder, {})[resource] = None
        for each in self._read(resource):
            self._at.setdefault(each.prefix, {})[resource, each] = None
            for depth in range(len(each.prefix)):
                self._below.setdefault(each.prefix[:depth], {})[resource, each] = None

    def remove(self, resource: str, holder: str) -> bool:
        """Note that it is free again; False if this holder did not hold it."""
        if self._held.get(resource) != (resource, holder):
            return False
        del self._held[resource]
        _drop(self._of, holder, resource)
        for each in self._read(resource):
            _drop(self._at, each.prefix, (resource, each))
            for depth in range(len(each.prefix)):
                _drop(self._below, each.prefix[:depth], (resource, each))
        return True

    def of(self, holder: str) -> list[str]:
        """What one holder holds."""
        return list(self._of.get(holder, ()))

    def _near(self, resource: str) -> Iterator[tuple[tuple[str, Alternative], Alternative]]:
        """What is held at the same literal names, above them and below them."""
        for wanted in self._read(resource):
            prefix = wanted.prefix
            for depth in range(len(prefix) + 1):
                for found in self._at.get(prefix[:depth], ()):
                    yield found, wanted
            for found in self._below.get(prefix, ()):
                yield found, wanted

    def _read(self, resource: str) -> tuple[Alternative, ...]:
        try:
            return parse(resource, fold_case=self._fold_case).alternatives
        except UsageError:
            # No path of a workspace: a name that means itself. No path has a NUL in it.
            return (Alternative((f"\0{resource}",), ()),)


def _drop(index: dict[K, dict[V, None]], key: K, value: V) -> None:
    listed = index[key]
    listed.pop(value, None)
    if not listed:
        del index[key]

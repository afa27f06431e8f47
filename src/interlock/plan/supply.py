"""Claims that could never be granted: more than there is, or protected paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from interlock.model.claim import Claim, Mode
from interlock.model.limits import Breaker, Rate
from interlock.model.patterns.overlap import overlap
from interlock.model.patterns.pattern import Pattern, parse
from interlock.plan.node import Node
from interlock.plan.problems import Problems

_PLENTY: Final = 10**15
_SLOTS: Final = "slots"


class Supply:
    """The counted resources of a project, and its protected paths."""

    def __init__(
        self,
        capacity: Mapping[str, int],
        limits: Mapping[str, Rate | Breaker],
        protected: Iterable[str],
    ) -> None:
        self._most = dict(capacity)
        self._rates: set[str] = set()
        for name, limit in limits.items():
            if isinstance(limit, Breaker):
                self._most[name] = _PLENTY
                continue
            for quota, counted in ((limit.requests, name), (limit.tokens, f"{name}.tokens")):
                if quota is not None:
                    self._most[counted] = quota.amount
                    self._rates.add(counted)
        self._protected: list[Pattern] = [parse(each) for each in protected]
        self._known: dict[str, str | None] = {}

    def check_uses(
        self,
        own: Iterable[Claim],
        others: Iterable[Claim],
        at: Iterable[Node],
        field: str,
        problems: Problems,
    ) -> None:
        """Note which of the `own` claims could never be granted, with the `others` on top."""
        totals: dict[str, int] = {}
        for claim in others:
            totals[claim.resource] = totals.get(claim.resource, 0) + claim.amount
        for claim, node in zip(own, at, strict=False):
            name, amount = claim.resource, claim.amount
            totals[name] = totals.get(name, 0) + amount
            most = self._most.get(name)
            if name == _SLOTS:
                problems.add(node, field, "every task takes one slot anyway; leave it out")
            elif most is None:
                if amount != 1:
                    text = f"{name!r} has no capacity, so a task cannot use {amount} of it"
                    more = ". Set it under `capacity`"
                    problems.unknown(node, field, name, text, self._most, more)
            elif claim.mode is Mode.EXCLUSIVE and name in self._rates:
                problems.add(node, field, f"{name!r} is a rate, which cannot be used exclusively")
            elif totals[name] > most:
                what = "a quota" if name in self._rates else "a capacity"
                problems.add(
                    node,
                    field,
                    f"it uses {totals[name]} of {name!r}, which has {what} of {most}: it could "
                    "never start",
                )

    def protected_in(self, pattern: str) -> str | None:
        """Return why the paths of a pattern cannot be written; None if they can."""
        if not self._protected:
            return None
        if pattern not in self._known:
            self._known[pattern] = self._look(pattern)
        return self._known[pattern]

    def _look(self, pattern: str) -> str | None:
        wanted = parse(pattern)
        for each in self._protected:
            witness = overlap(wanted, each)
            if witness is not None:
                if witness == pattern:
                    return f"{pattern!r} is protected by {each.text!r}"
                return f"{pattern!r} includes {witness!r}, and {each.text!r} is protected"
        return None

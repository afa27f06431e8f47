"""Ownership: which type of agent may write which paths."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from interlock.errors import InvalidOwnership
from interlock.model.patterns.overlap import overlap
from interlock.model.patterns.pattern import Alternative, Pattern, parse, path_names


@dataclass(frozen=True, slots=True)
class SharedOwnership:
    """A path that the rules give to two agents."""

    agents: tuple[str, str]
    patterns: tuple[str, str]
    witness: str

    def __str__(self) -> str:
        return (
            f"{self.witness} belongs to {self.agents[0]} ({self.patterns[0]}) "
            f"and to {self.agents[1]} ({self.patterns[1]})"
        )


class Ownership:
    """Rules for ownership: for each agent, the patterns of its paths.

    Where rules overlap the earlier one decides, so a path never has two owners; `problems()`
    reports overlaps. No agent may write a path without an owner, unless the rules are `open`. No
    agent may write a path outside the workspace.
    """

    __slots__ = ("_fold_case", "_rules", "open")

    def __init__(
        self,
        rules: Mapping[str, str | Iterable[str]],
        *,
        open: bool = False,
        fold_case: bool = False,
    ) -> None:
        self.open = open
        self._fold_case = fold_case
        self._rules: dict[str, tuple[Pattern, ...]] = {}
        for agent, patterns in rules.items():
            if not agent.strip():
                raise InvalidOwnership(f"the owner of {patterns!r} needs a name that is not blank")
            listed = (patterns,) if isinstance(patterns, str) else tuple(patterns)
            self._rules[agent] = tuple(parse(each, fold_case=fold_case) for each in listed)

    def owner_of(self, path: str) -> str | None:
        """Return the agent that owns a path, or None."""
        for agent, patterns in self._rules.items():
            if any(pattern.matches(path) for pattern in patterns):
                return agent
        return None

    def owned_by(self, agent: str) -> tuple[str, ...]:
        """Return the patterns that an agent owns; none for an unknown agent."""
        return tuple(pattern.text for pattern in self._rules.get(agent, ()))

    def allows(self, agent: str, path: str) -> bool:
        """Whether the agent may write the path."""
        owner = self.owner_of(path)
        if owner is None:
            return self.open and bool(path_names(path, fold_case=self._fold_case))
        return owner == agent

    def parse(self, text: str) -> Pattern:
        """Parse a pattern with the case rule of these rules."""
        return parse(text, fold_case=self._fold_case)

    def reaches(self, pattern: Pattern) -> bool:
        """Whether some path of the pattern has an owner."""
        return any(overlap(pattern, each) for patterns in self._rules.values() for each in patterns)

    def covers(self, pattern: Pattern, agents: Iterable[str] | None = None) -> bool:
        """Whether these agents (None: all) own every path; False also where it is not obvious."""
        names = self._rules if agents is None else agents
        owned = [
            alternative
            for name in names
            for each in self._rules.get(name, ())
            for alternative in each.alternatives
        ]
        return all(any(_covers(each, part) for each in owned) for part in pattern.alternatives)

    def conflict(self, agent: str, pattern: Pattern) -> tuple[str, str] | None:
        """Another agent, and a path of the pattern that belongs to it and not to this agent."""
        for other, patterns in self._rules.items():
            for theirs in patterns if other != agent else ():
                witness = overlap(pattern, theirs)
                if witness is not None and not self.allows(agent, witness):
                    return other, witness
        return None

    def problems(self) -> list[SharedOwnership]:
        """Return every pair of patterns of different owners that overlap.

        As with claims, a plain name counts as a folder only where the other pattern spells it out
        as one. Owners of whole folders should write `src/`.
        """
        found: list[SharedOwnership] = []
        for (one, ours), (other, theirs) in itertools.combinations(self._rules.items(), 2):
            for mine, their in itertools.product(ours, theirs):
                witness = overlap(mine, their)
                if witness is not None:
                    patterns = (mine.text, their.text)
                    found.append(SharedOwnership((one, other), patterns, witness))
        return found

    def unowned(self, paths: Iterable[str]) -> list[str]:
        """Return those of the paths that have no owner."""
        return [path for path in paths if self.owner_of(path) is None]


def _covers(owned: Alternative, wanted: Alternative) -> bool:
    if owned == wanted:
        return True
    depth = len(owned.prefix)
    return (owned.is_subtree or owned.is_plain) and wanted.prefix[:depth] == owned.prefix

"""Estimates for tasks that bring none: the durations of earlier tasks of the same agent."""

from __future__ import annotations

from collections.abc import Callable

from interlock.journal.agent_identity import agent_name
from interlock.journal.history import Estimate, labels_of
from interlock.model.task import Task

_ENOUGH = 3
"""A label with fewer successes than this is used only if no label has as many."""

_MOST = 10_000
"""How many pairs of agent and label are remembered."""

Look = Callable[[str, str], Estimate | None]


class Estimates:
    """Reads the history in a journal, once for each pair of agent and label."""

    def __init__(self, look: Look) -> None:
        self._read = look
        self._found: dict[tuple[str, str], Estimate | None] = {}

    def of(self, task: Task) -> float | None:
        """The mean under the label with the least spread; None if the agent has no history."""
        agent = agent_name(task.agent)
        found = [self.look(agent, label) for label in labels_of(task.labels)]
        known = [each for each in found if each is not None]
        if not known:
            return None
        return min(known, key=lambda each: (each.n < _ENOUGH, each.spread)).mean

    def look(self, agent: str, label: str) -> Estimate | None:
        """The history of an agent under one label."""
        if (agent, label) not in self._found:
            # A long-lived run may see any number of labels. Reading some again costs little.
            if len(self._found) >= _MOST:
                self._found.clear()
            self._found[agent, label] = self._read(agent, label)
        return self._found[agent, label]

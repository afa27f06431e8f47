"""How long a task will take that brings no estimate: as long as its agent took before."""

from __future__ import annotations

from collections.abc import Callable

from interlock.journal.agent_identity import agent_name
from interlock.journal.history import Estimate, labels_of
from interlock.model.task import Task

_ENOUGH = 3
"""So many successes of an agent say more than fewer with a narrower label."""

Look = Callable[[str, str], Estimate | None]


class Estimates:
    """Looks into the history of a journal, once for each pair of agent and label."""

    def __init__(self, look: Look) -> None:
        self._read = look
        self._found: dict[tuple[str, str], Estimate | None] = {}

    def of(self, task: Task) -> float | None:
        """What the label says whose tasks differ least; None if its agent was never seen."""
        agent = agent_name(task.agent)
        found = [self.look(agent, label) for label in labels_of(task.labels)]
        known = [each for each in found if each is not None]
        if not known:
            return None
        return min(known, key=lambda each: (each.n < _ENOUGH, each.spread)).mean

    def look(self, agent: str, label: str) -> Estimate | None:
        """What the history has under one label."""
        if (agent, label) not in self._found:
            self._found[agent, label] = self._read(agent, label)
        return self._found[agent, label]

"""Estimates how long a run will still take.

A task is expected to take its estimate; without one, the average of its agent's tasks in this run,
or of all tasks. For a running task that reports progress, its progress counts instead. The rest of
the run takes the longer of two times: that of the longest chain of tasks, and that of all work
divided by the slots. Waiting for claims can make it longer, which is why views say "about".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model import graph
from interlock.model.outcome import State

_EARLY = 0.05
"""A smaller fraction says nothing about the rest."""
_LATE = 0.1
"""A task that has exceeded its estimate is expected to need a tenth of its time so far."""


def seconds_left(facts: RunFacts) -> float | None:
    """Seconds until all tasks have ended; None if that is unknown or depends on a person."""
    if facts.progress.needs_you:
        return None
    unfinished = [task for task in facts.tasks if not task.state.is_end]
    usual = _usual(facts)
    weight: dict[str, float] = {}
    for task in unfinished:
        left = _left(task, usual, facts.at)
        if left is None:
            return None
        weight[task.id] = left
    if not unfinished:
        return 0.0
    after = {task.id: task.after for task in unfinished}
    chain = max(graph.tails(after, weight).values())
    return max(chain, sum(weight.values()) / max(1, facts.slots))


def _usual(facts: RunFacts) -> Mapping[str, float]:
    """The average duration of tasks by agent; of all tasks under the empty name."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    for task in facts.tasks:
        if task.state is State.SUCCEEDED and task.attempt:
            took[""].append(task.duration)
            if task.agent:
                took[task.agent].append(task.duration)
    return {agent: sum(each) / len(each) for agent, each in took.items()}


def expected(task: TaskFacts, usual: Mapping[str, float]) -> float | None:
    """How long an attempt at the task is expected to take; None if that is unknown."""
    if task.estimate is not None:
        return task.estimate
    return usual.get(task.agent, usual.get(""))


def _left(task: TaskFacts, usual: Mapping[str, float], now: float) -> float | None:
    whole = expected(task, usual)
    if task.state is not State.RUNNING or task.started_at is None:
        return whole
    had = max(0.0, now - task.started_at)
    if task.fraction is not None and task.fraction >= _EARLY:
        return had * (1 - min(task.fraction, 1.0)) / task.fraction
    return None if whole is None else max(whole - had, _LATE * had)

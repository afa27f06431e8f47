"""Which tasks of a plan cannot run at the same time, and why: known before anything starts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import reduce
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from interlock.journal.state.run_fold import said
from interlock.model.claim import Claim
from interlock.model.conflict import conflicts
from interlock.model.labels import AGENT_LABEL
from interlock.model.task import Task
from interlock.plan.records import Plan

_MOST = 200
"""The maximum number of pairs that are listed."""
COMPARED = 1_000
"""How many tasks are compared, each with each. More would take too long and too much memory."""


class PlanConflict(NamedTuple):
    """Two tasks that cannot run at the same time."""

    one: str
    other: str
    about: str
    """What both of them claim."""


def find_conflicts(tasks: Sequence[Task], capacity: Mapping[str, int]) -> list[PlanConflict]:
    """Every pair of tasks that could run together but for their claims, with the reason."""
    compared = tasks[:COMPARED]
    bits = {task.id: 1 << number for number, task in enumerate(compared)}
    before = _ancestors(tasks, bits)
    known: dict[tuple[Claim, Claim], str | None] = {}
    found: list[PlanConflict] = []
    for one, other in itertools.combinations(compared, 2):
        if bits[one.id] & before[other.id] or bits[other.id] & before[one.id]:
            continue
        for pair in itertools.product(one.claims, other.claims):
            if pair not in known:
                known[pair] = _about(*pair, capacity)
            about = known[pair]
            if about is not None:
                found.append(PlanConflict(one.id, other.id, about))
                break
        if len(found) == _MOST:
            break
    return found


def plan_json(plan: Plan, tasks: Sequence[Task], found: Sequence[PlanConflict]) -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "plan": plan.name,
        "tasks": [
            {
                "id": task.id,
                "agent": task.labels.get(AGENT_LABEL, ""),
                "prompt": None if task.prompt is None else str(task.prompt),
                "claims": [said(claim) for claim in task.claims],
                "after": list(task.after),
                "priority": task.priority,
                "timeout": task.timeout,
                "attempts": task.retry.attempts,
            }
            for task in tasks
        ],
        "conflicts": [each._asdict() for each in found],
    }


class GraphTask(NamedTuple):
    """A task as a node of a graph."""

    id: str
    after: tuple[str, ...]
    agent: str
    claims: tuple[str, ...]


def nodes(tasks: Sequence[Task]) -> list[GraphTask]:
    """The tasks as nodes of a graph."""
    return [
        GraphTask(
            task.id, task.after, task.labels.get(AGENT_LABEL, ""), tuple(map(said, task.claims))
        )
        for task in tasks
    ]


def _about(one: Claim, other: Claim, capacity: Mapping[str, int]) -> str | None:
    clash = conflicts(one, other, capacity)
    if clash is None:
        return None
    if one.is_path:
        return f"{said(one)} and {said(other)} both match {clash.witness}"
    return f"both use {clash.witness}, and there is not enough of it for both"


def _ancestors(tasks: Sequence[Task], bits: Mapping[str, int]) -> dict[str, int]:
    """For each task, the bits of all its dependencies, direct and indirect."""
    found: dict[str, int] = {}
    after = {task.id: task.after for task in tasks}
    for each in TopologicalSorter(after).static_order():
        found[each] = reduce(
            lambda so_far, other: so_far | found[other] | bits.get(other, 0), after.get(each, ()), 0
        )
    return found

"""What can be told of tasks before anything starts: who cannot run beside whom, and why."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlock.model.claim import Claim
from interlock.model.conflict import conflicts
from interlock.model.task import Task
from interlock.plan.records import Plan
from interlock.runtime.project import AGENT
from interlock.views.fold import said

_MOST = 200
"""So many pairs are worth telling."""


class Collision(NamedTuple):
    """Two tasks that cannot run at the same time."""

    one: str
    other: str
    about: str
    """What they both want."""


def collisions(tasks: Sequence[Task], capacity: Mapping[str, int]) -> list[Collision]:
    """Every two tasks that would otherwise run side by side, and what keeps them apart."""
    before = _ancestors(tasks)
    known: dict[tuple[Claim, Claim], str | None] = {}
    found: list[Collision] = []
    for one, other in itertools.combinations(tasks, 2):
        if one.id in before[other.id] or other.id in before[one.id]:
            continue
        for pair in itertools.product(one.claims, other.claims):
            if pair not in known:
                known[pair] = _about(*pair, capacity)
            about = known[pair]
            if about is not None:
                found.append(Collision(one.id, other.id, about))
                break
        if len(found) == _MOST:
            break
    return found


def picture(plan: Plan, tasks: Sequence[Task], found: Sequence[Collision]) -> dict[str, Any]:
    """A plan as facts."""
    return {
        "plan": plan.name,
        "tasks": [
            {
                "id": task.id,
                "agent": task.labels.get(AGENT, ""),
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


class Node(NamedTuple):
    """A task as a graph shows it."""

    id: str
    after: tuple[str, ...]
    agent: str
    claims: tuple[str, ...]


def nodes(tasks: Sequence[Task]) -> list[Node]:
    """Tasks for a graph."""
    return [
        Node(task.id, task.after, task.labels.get(AGENT, ""), tuple(map(said, task.claims)))
        for task in tasks
    ]


def _about(one: Claim, other: Claim, capacity: Mapping[str, int]) -> str | None:
    clash = conflicts(one, other, capacity)
    if clash is None:
        return None
    if one.is_path:
        return f"{said(one)} and {said(other)} both mean {clash.witness}"
    return f"both use {clash.witness}, of which there is not enough for two"


def _ancestors(tasks: Sequence[Task]) -> dict[str, set[str]]:
    """For each task all that comes before it. Tasks may be listed in any order."""
    by_id = {task.id: task for task in tasks}
    found: dict[str, set[str]] = {}

    for task in tasks:
        todo, seen = list(task.after), set[str]()
        while todo:
            each = todo.pop()
            if each in seen:
                continue
            seen.add(each)
            seen |= found.get(each, set())
            if each in by_id and each not in found:
                todo += by_id[each].after
        found[task.id] = seen
    return found

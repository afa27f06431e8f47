"""Refusing tasks that would have to wait for a claim, for callers that prefer an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from interlock.errors import ResourceConflictError
from interlock.model.claim import Claim
from interlock.model.conflict import conflicts
from interlock.model.task import Task

Holder = tuple[str, tuple[Claim, ...]]
"""A task that has not ended, or an attempt that is alive, also of an earlier run; its claims."""


def refuse_conflicts(tasks: Sequence[Task], holders: Iterable[Holder], *, fold_case: bool) -> None:
    """Raise ResourceConflictError if a task could not have its claims at once.

    Tasks that come after each other do not conflict. Amounts of a counted resource, slots among
    them, are waited for as usual. Every claim is compared with every claim, so this is meant for
    submissions and runs of moderate size.
    """
    directly = {task.id: task.after for task in tasks}
    after = {task.id: _all_before(task.id, directly) for task in tasks}
    for first, second in combinations(tasks, 2):
        if first.id not in after[second.id] and second.id not in after[first.id]:
            _compare(second, first.id, first.claims, fold_case)
    for holder, claims in holders:
        for task in tasks:
            if holder not in after[task.id]:
                _compare(task, holder, claims, fold_case)


def _compare(task: Task, holder: str, held: tuple[Claim, ...], fold_case: bool) -> None:
    for claim in task.claims:
        for other in held:
            found = conflicts(claim, other, fold_case=fold_case)
            if found is not None:
                raise ResourceConflictError(
                    f"task {task.id!r} claims {claim}, which conflicts with {other} of {holder!r}; "
                    "nothing was submitted"
                )


def _all_before(task_id: str, after: dict[str, tuple[str, ...]]) -> set[str]:
    """The tasks that have to end first, directly or through others of the submission."""
    found: set[str] = set()
    open_ids = [task_id]
    while open_ids:
        for each in after.get(open_ids.pop(), ()):
            if each not in found:
                found.add(each)
                open_ids.append(each)
    return found

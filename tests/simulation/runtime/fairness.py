"""Statement 19, as far as it can be seen from outside: no task is passed too often."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.model.conflict import conflicts
from interlock.model.task import Task
from tests.simulation.runtime.play import Play

_SIMPLE = frozenset({"submit", "await", "look", "same key", "bad input"})
"""Acts of a user in a run that is simple enough to count in."""
_STEPS = frozenset({"work", "write", "read", "report", "raise", "return an error"})


def passed_too_often(play: Play) -> Iterator[str]:
    """In a run of plain tasks, younger tasks start past a conflicting one at most 4 × slots times.

    2 × slots without estimates. Priorities, waits in mid-flight, zombies and steering have rules of
    their own, which are judged in the simulation of the kernel.
    """
    if not _is_simple(play):
        return
    record, seen = play.record, play.record.seen
    for task_id, asked in record.asked.items():
        visits = record.site.of(task_id)
        if asked.task.after or asked.task.args or not visits:
            continue
        began, passed = visits[0].began, 0
        for other in record.site.visits:
            younger = record.asked[other.task_id]
            if asked.at.number < other.began.number < began.number and (
                younger.at.time > asked.at.time and _meet(asked.task, younger.task)
            ):
                passed += 1
        seen["passed while it waited"] += passed
        bound = 2 * play.story.slots
        if passed > bound:
            yield f"19: {task_id} was passed {passed} times, {bound} are allowed"


def _is_simple(play: Play) -> bool:
    if any(act.kind not in _SIMPLE for act in play.story.acts) or play.story.journal_takes:
        return False
    plans = play.plans.values()
    plain = all(s.kind in _STEPS for plan in plans for course in plan.courses for s in course)
    return plain and not any(
        p.task.priority
        or p.task.timeout is not None
        or p.task.deadline is not None
        or p.swallows
        or p.task.estimate is not None
        or p.task.retry.attempts > 1
        for p in plans
    )


def _meet(a: Task, b: Task) -> bool:
    return any(conflicts(x, y) for x in a.claims if x.is_path for y in b.claims if y.is_path)

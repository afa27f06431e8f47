"""No task that could start is left waiting (S9), and none is overtaken too often (S19)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from interlock.model.claim import Claim
from tests.simulation.kernel.amounts import lacking, users
from tests.simulation.kernel.shadow import (
    Shadow,
    ShadowAttempt,
    ShadowRequest,
    ShadowTask,
    Violation,
)

if TYPE_CHECKING:
    from interlock.kernel.kernel import Kernel


def overtaking_limit(slots: int) -> int:
    """How often a task may be overtaken; `slots` is the most there were while it waited."""
    return 2 * slots


def started(shadow: Shadow, item: ShadowTask, seen: Counter[str]) -> None:
    """A task starts: count it against every older one that waits."""
    if item.exempt:
        return  # An older task may wait for what waits for this one: it cannot be held back.
    born = shadow.step if item.ready is None else item.ready
    older = [i for i in shadow.waiting() if i.ready is not None and i.ready < born]
    older = [i for i in older if i is not item and not i.paused]
    if shadow.first_come:
        older = [i for i in older if i.task.priority >= item.task.priority]
    for other in older:
        _pass(shadow, item, other)
        if shadow.clash(item.task.claims, other.task.claims) and not zombies_against(shadow, other):
            _overtake(shadow, item, other)
            seen["overtaken"] += 1
    _pass_oldest(shadow, item, older, seen)
    _pass_due(shadow, item)


def _pass(shadow: Shadow, item: ShadowTask, other: ShadowTask) -> None:
    """Count what gives an older task the right to hold others back."""
    limit = overtaking_limit(shadow.slots)
    if not shadow.against(other, other.task.claims):
        # It lacked capacity at most, and every start takes a slot.
        other.passed_for_capacity += 1
        if other.passed_for_capacity >= limit:
            other.may_reserve = True
    conflicts = shadow.clash(item.task.claims, other.task.claims)
    if conflicts and not certain_zombies_against(shadow, other):
        other.passed += 1
        if other.passed >= limit:
            other.may_close = True


def _pass_oldest(
    shadow: Shadow, item: ShadowTask, older: list[ShadowTask], seen: Counter[str]
) -> None:
    """Check that the oldest waiter, if it lacks nothing but a slot, is not passed for ever.

    Starts are counted against one waiter at a time, so each other waiter may come before it.
    """
    first = min((i.ready for i in older if i.ready is not None), default=None)
    oldest = [i for i in older if i.ready == first]
    if len(oldest) != 1 or not could_start(shadow, oldest[0]):
        return
    [other] = oldest
    other.passed_for_slot += 1
    other.slots_seen = max(other.slots_seen, shadow.slots)
    other.beside = max(other.beside, len(shadow.waiting()))
    seen["passed for a slot"] += 1
    limit = overtaking_limit(other.slots_seen) * other.beside
    if other.passed_for_slot > limit:
        raise Violation(
            f"S19: {item.id} starts past {other.id}, which is the oldest, lacks nothing and was"
            f" passed {other.passed_for_slot} times, {limit} being allowed"
        )


def _pass_due(shadow: Shadow, item: ShadowTask) -> None:
    """Note a start before a waiter that holds others back: that waiter has the top rank."""
    if item.may_close or item.may_reserve:
        return
    for due, _ in shadow.reserved:
        waits = due is not item and due in shadow.waiting()
        if waits and could_start(shadow, due) and not _held_back(shadow, due):
            shadow.passed_due.append((item, due))


def _overtake(shadow: Shadow, item: ShadowTask, other: ShadowTask) -> None:
    other.overtaken += 1
    other.slots_seen = max(other.slots_seen, shadow.slots)
    limit = overtaking_limit(other.slots_seen)
    if other.overtaken > limit and _out_of_its_way(shadow, item, other):
        limit *= 2
    if other.overtaken > limit:
        raise Violation(
            f"S19: {item.id} starts past {other.id}, which is older, conflicts with it and was"
            f" overtaken {other.overtaken} times, {limit} being allowed"
        )


def _out_of_its_way(shadow: Shadow, item: ShadowTask, other: ShadowTask) -> bool:
    """Whether a task will, by all estimates, end before what blocks the other one is gone."""
    ends = []
    for attempt in shadow.against(other, other.task.claims):
        if attempt.item is not item:
            estimate = attempt.item.task.estimate
            if estimate is None:
                return False
            end = attempt.started_at + estimate
            ends.append(end if end > shadow.now else 2 * shadow.now - attempt.started_at)
    estimate = item.task.estimate
    return bool(ends) and estimate is not None and shadow.now + estimate <= max(ends)


def zombies_against(shadow: Shadow, item: ShadowTask) -> list[ShadowAttempt]:
    """Attempts that are over but not gone and hold what the task needs, including its own."""
    certain = certain_zombies_against(shadow, item)
    short = sorted({c.resource for c in lacking(shadow, item, item.task.claims)})
    return certain + [a for name in short for a, _ in users(shadow, name) if a.over]


def certain_zombies_against(shadow: Shadow, item: ShadowTask) -> list[ShadowAttempt]:
    """The same without amounts, because a zombie may hold only part of an amount."""
    own = [item.attempt] if item.attempt and item.attempt.over else []
    return own + [a for a in shadow.against(item, item.task.claims) if a.over]


def check(shadow: Shadow, kernel: Kernel | None, seen: Counter[str]) -> None:
    """Check that no reservation is unjustified, and that nothing waits that could go on."""
    shadow.reserved = _reservations(shadow, kernel, seen)
    # A reservation that a zombie suspended counts again once the zombie is gone; only the new
    # list shows that.
    for item, due in shadow.passed_due:
        if not _held_back(shadow, due):
            raise Violation(f"S19: {item.id} starts before {due.id}, which holds others back")
    shadow.passed_due.clear()
    for attempt, request in shadow.waits():
        if _could_resume(shadow, attempt, request):
            raise Violation(
                f"S9: {attempt.item.id} (token {attempt.token}) could go on after its"
                f" {request.kind}, but it was not resumed"
            )
    for item in shadow.waiting():
        if could_start(shadow, item) and not _held_back(shadow, item):
            raise Violation(f"S9: {item.id} could start, but it was left waiting")


def _reservations(
    shadow: Shadow, kernel: Kernel | None, seen: Counter[str]
) -> list[tuple[ShadowTask, tuple[Claim, ...]]]:
    for item in shadow.waiting():
        item.slots_seen = max(item.slots_seen, shadow.slots)
    if kernel is None:
        return []
    reserved = []
    for reservation in kernel.reservations():
        item = shadow.items[reservation.task_id]
        if item.status is not None or item.running:
            raise Violation(f"S19: {item.id} does not wait, yet it holds a reservation")
        closes = bool(shadow.exclusive(reservation.claims))
        if not (item.may_close if closes else item.may_reserve):
            raise Violation(f"S19: {item.id} holds others back without having been overtaken")
        seen["reservation"] += 1
        reserved.append((item, tuple(reservation.claims)))
    return reserved


def _held_back(shadow: Shadow, item: ShadowTask) -> bool:
    """Whether some reservation keeps this task from starting."""
    return any(_stands_against(shadow, due, claims, item) for due, claims in shadow.reserved)


def _stands_against(
    shadow: Shadow, older: ShadowTask, claims: tuple[Claim, ...], item: ShadowTask
) -> bool:
    """Whether that reservation keeps this task from starting."""
    if older is item or older.ready is None or older.paused or item.exempt:
        return False
    if item.ready is None or certain_zombies_against(shadow, older):
        return False
    if shadow.exclusive(claims):
        return older.ready < item.ready and shadow.clash(claims, item.task.claims)
    # A reserved amount is reserved against all tasks, older ones included.
    names = {c.resource for c in claims}
    return any(c.resource in names for c in shadow.amounts(item.task.claims))


def could_start(shadow: Shadow, item: ShadowTask) -> bool:
    """Whether nothing but a reservation keeps a waiting task from starting."""
    claims = item.task.claims
    if shadow.paused or item.paused or item.attempt is not None:
        return False
    if shadow.draining and not item.exempt:
        return False  # Exempt tasks may start: a running task may need them in order to end.
    if shadow.unmet(item) or shadow.slots_taken() >= shadow.slots:
        return False
    if shadow.against(item, claims) or lacking(shadow, item, claims):
        return False
    # The kernel knows what a rate gives back only after the tick at that time.
    return not shadow.limited(claims, shadow.ticked_at) and not _takes_ahead(shadow, claims)


def _takes_ahead(shadow: Shadow, claims: tuple[Claim, ...]) -> bool:
    """Whether an attempt in mid-flight already waits for one of these rates."""
    names = {c.resource for c in shadow.rated(claims)}
    return any(c.resource in names for _, request in shadow.waits() for c in request.claims)


def _could_resume(shadow: Shadow, attempt: ShadowAttempt, request: ShadowRequest) -> bool:
    if attempt.needs_slot(request) and shadow.slots_taken() >= shadow.slots:
        return False
    if any(shadow.items[name].status is None for name in request.tasks):
        return False
    if request.kind == "ask":
        return request.answered
    item, claims = attempt.item, request.claims
    if shadow.against(item, claims) or lacking(shadow, item, claims):
        return False
    if shadow.limited(request.claims, shadow.ticked_at):
        return False
    others = [other for _, other in shadow.waits() if other is not request]
    ahead = [c.resource for other in others for c in other.claims]
    return not any(c.resource in ahead for c in shadow.rated(request.claims))

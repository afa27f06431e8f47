"""Nothing startable is left waiting (S9), and nobody is overtaken too often (S19)."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from interlock.model.claim import Claim
from interlock.testing.amounts import lacking, users
from interlock.testing.shadow import Attempt, Item, Shadow, Violation, any_clash

if TYPE_CHECKING:
    from interlock.kernel.kernel import Kernel


def overtaking_limit(slots: int) -> int:
    """How often a task may be overtaken, `slots` being the most there were while it waited."""
    return 2 * slots


def reserves_from(slots: int, amounts: int) -> int:
    """From how many overtakings on a task may hold others back.

    A start that passes it for a slot and for amounts may be counted once for each of them.
    """
    return max(1, 2 * slots // (1 + amounts))


@cache
def coarse(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """The claims with each pattern widened to the folder that its literal beginning names."""
    return tuple(Claim(_folder(c.resource), c.mode) if c.is_path else c for c in claims)


def _folder(pattern: str) -> str:
    names = []
    for name in pattern.split("/"):
        if any(mark in name for mark in "*?[{"):
            break
        names.append(name)
    return "/".join(name for name in names if name) or "**"


def started(shadow: Shadow, item: Item, seen: Counter[str]) -> None:
    """A task starts: count it against every older one that waits and conflicts with it."""
    born = shadow.step if item.ready is None else item.ready
    claims = shadow.exclusive(item.task.claims)
    names = {c.resource for c in item.task.claims if not c.is_path}
    for other in shadow.waiting():
        if other is item or other.ready is None or other.ready >= born:
            continue
        theirs = shadow.exclusive(other.task.claims)
        both = [c.resource for c in other.task.claims if c.resource in names]
        for name in ("slots", *both):
            other.passed[name] = other.passed.get(name, 0) + 1
        if any_clash(coarse(claims), coarse(theirs)):
            other.passed["paths"] = other.passed.get("paths", 0) + 1
        if any_clash(claims, theirs) and not _excused(shadow, item, other):
            _overtake(shadow, item, other)
            seen["overtaken"] += 1


def _overtake(shadow: Shadow, item: Item, other: Item) -> None:
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


def _out_of_its_way(shadow: Shadow, item: Item, other: Item) -> bool:
    """Whether by all estimates a task is done before what blocks the other one is gone."""
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


def _excused(shadow: Shadow, item: Item, other: Item) -> bool:
    """Whether a start past an older task does not count."""
    if item.parent is not None:
        return True  # Its parent may be what the older one waits for: it could not be held back.
    return other.paused or shadow.paused or bool(zombies_against(shadow, other))


def zombies_against(shadow: Shadow, item: Item) -> list[Attempt]:
    """Attempts that are over but not gone and hold what the task needs, its own included."""
    certain = certain_zombies_against(shadow, item)
    short = sorted({c.resource for c in lacking(shadow, item, item.task.claims)})
    return certain + [a for name in short for a, _ in users(shadow, name) if a.over]


def certain_zombies_against(shadow: Shadow, item: Item) -> list[Attempt]:
    """The same without amounts, of which a zombie may hold only a part."""
    own = [item.attempt] if item.attempt and item.attempt.over else []
    return own + [a for a in shadow.against(item, item.task.claims) if a.over]


def check(shadow: Shadow, kernel: Kernel | None, seen: Counter[str]) -> None:
    """No reservation without right, and nobody waits who could go on."""
    reserved = _reservations(shadow, kernel, seen)
    for attempt in shadow.alive.values():
        if attempt.request and not attempt.over and _could_resume(shadow, attempt):
            raise Violation(
                f"S9: {attempt.item.id} (token {attempt.token}) could go on after its"
                f" {attempt.request.kind}, but it was not resumed"
            )
    for item in shadow.waiting():
        if could_start(shadow, item) and not any(
            _stands_against(shadow, older, claims, item) for older, claims in reserved
        ):
            raise Violation(f"S9: {item.id} could start, but it was left waiting")


def _reservations(
    shadow: Shadow, kernel: Kernel | None, seen: Counter[str]
) -> list[tuple[Item, tuple[Claim, ...]]]:
    for item in shadow.waiting():
        item.slots_seen = max(item.slots_seen, shadow.slots)
        names = [c for c in item.task.claims if not c.is_path]
        for name, times in item.passed.items():
            needed = reserves_from(shadow.slots, 0 if name == "paths" else len(names))
            item.may_reserve |= times >= needed
    if kernel is None:
        return []
    reserved = []
    for reservation in kernel.reservations():
        item = shadow.items[reservation.task_id]
        if item.status is not None or item.running:
            raise Violation(f"S19: {item.id} does not wait, yet it holds a reservation")
        if not item.may_reserve:
            raise Violation(f"S19: {item.id} holds others back without having been overtaken")
        seen["reservation"] += 1
        reserved.append((item, tuple(reservation.claims)))
    return reserved


def _stands_against(shadow: Shadow, older: Item, claims: tuple[Claim, ...], item: Item) -> bool:
    """Whether that reservation keeps this task from starting."""
    if older is item or older.ready is None or older.paused or item.parent is not None:
        return False
    if item.ready is None or older.ready >= item.ready or certain_zombies_against(shadow, older):
        return False
    if any_clash(shadow.exclusive(claims), shadow.exclusive(item.task.claims)):
        return True
    names = {c.resource for c in claims if not c.is_path}
    return any(c.resource in names for c in item.task.claims if not c.is_path)


def could_start(shadow: Shadow, item: Item) -> bool:
    """Whether nothing but a reservation keeps a waiting task from starting."""
    claims = item.task.claims
    if shadow.paused or item.paused or shadow.draining or item.attempt is not None:
        return False
    if shadow.unmet(item) or shadow.slots_taken() >= shadow.slots:
        return False
    if shadow.against(item, claims) or lacking(shadow, item, claims):
        return False
    # What a rate gives back is known to the kernel when the timer of that moment has ticked.
    return not shadow.limited(claims, shadow.ticked_at) and not _takes_ahead(shadow, claims)


def _takes_ahead(shadow: Shadow, claims: tuple[Claim, ...]) -> bool:
    """Whether somebody in mid-flight already waits for one of these rates."""
    names = {c.resource for c in shadow.rated(claims)}
    waits = (a.request for a in shadow.alive.values() if a.request and not a.over)
    return any(c.resource in names for r in waits for c in r.claims)


def _could_resume(shadow: Shadow, attempt: Attempt) -> bool:
    request = attempt.request
    assert request is not None
    if not attempt.has_slot and shadow.slots_taken() >= shadow.slots:
        return False
    if any(shadow.items[child].status is None for child in request.children):
        return False
    if request.kind == "ask":
        return request.answered
    item, claims = attempt.item, request.claims
    if shadow.against(item, claims) or lacking(shadow, item, claims):
        return False
    if shadow.limited(request.claims, shadow.ticked_at):
        return False
    others = [a for a in shadow.alive.values() if a.request and a is not attempt]
    ahead = [c.resource for a in others if a.request for c in a.request.claims]
    return not any(c.resource in ahead for c in shadow.rated(request.claims))

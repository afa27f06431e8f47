"""Brute-force sums of counted resources, with what ancestors lend to their descendants.

Descendants may use what a task holds. How much of it is lent out at a moment depends on the order
of the starts, so there are two views. `lacking` is cautious: a task that lacks nothing by it may
not be left waiting. `exceeding` is generous: what exceeds by it may never be granted.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlock.model.claim import Claim, Mode
from tests.simulation.kernel.shadow import Shadow, ShadowAttempt, ShadowTask


def lacking(shadow: Shadow, item: ShadowTask, claims: tuple[Claim, ...]) -> list[Claim]:
    """The counted claims of a task for which there may be too little left."""
    family = list(item.above()) + ([item.attempt] if item.running and item.attempt else [])
    short = []
    for claim in shadow.counted(claims):
        held = users(shadow, claim.resource)
        foreign = [c for a, c in held if a not in family]
        alone = claim.mode is Mode.EXCLUSIVE or any(c.mode is Mode.EXCLUSIVE for _, c in held)
        if (alone and foreign) or (claim.mode is Mode.EXCLUSIVE and not _size(shadow, claim)):
            short.append(claim)
        elif not alone or len(foreign) == len(held):
            left = shadow.capacities[claim.resource] - sum(c.amount for _, c in held)
            alive = shadow.alive.values()
            lent = sum(lendable(shadow, claim.resource, a, alive) for a in item.above())
            if claim.amount > max(0, left) + lent:
                short.append(claim)
        elif claim.amount > shadow.capacities[claim.resource]:
            short.append(claim)  # An ancestor holds all of it, and a throttle has made that less.
    return short


def lendable(
    shadow: Shadow, resource: str, lender: ShadowAttempt, holders: Iterable[ShadowAttempt]
) -> int:
    """What a lender certainly has left of what it holds, if these are all the holders."""
    held = [(a, c) for a, c in users(shadow, resource) if a in holders]
    own = sum(c.amount for a, c in held if a is lender)
    return max(0, own - sum(c.amount for a, c in held if lender in a.item.above()))


def exceeding(shadow: Shadow, item: ShadowTask, claims: tuple[Claim, ...]) -> list[Claim]:
    """The counted claims of a task that are certainly more than is left for it."""
    over = []
    for claim in shadow.counted(claims):
        family = [item.attempt, *item.above()]
        foreign = [c for a, c in users(shadow, claim.resource) if a not in family]
        alone = claim.mode is Mode.EXCLUSIVE or any(c.mode is Mode.EXCLUSIVE for c in foreign)
        before = usage(shadow, claim.resource, shadow.alive.values())
        after = usage(shadow, claim.resource, shadow.alive.values(), item, claim)
        capacity = shadow.capacities[claim.resource]
        grows = after > before and after > capacity
        of_nothing = claim.mode is Mode.EXCLUSIVE and not capacity
        if grows or of_nothing or (alone and foreign):
            over.append(claim)
    return over


def usage(
    shadow: Shadow,
    resource: str,
    attempts: Iterable[ShadowAttempt],
    item: ShadowTask | None = None,
    claim: Claim | None = None,
) -> int:
    """How much these attempts hold together, with `item` as if it had that claim.

    An attempt and its descendants use what it holds, or more where the descendants need more.
    """
    # An exclusive holder has all there was when it started, perhaps more than there is now.
    own: dict[ShadowAttempt | None, int] = {
        a: sum(
            shadow.most[resource] if c.mode is Mode.EXCLUSIVE else c.amount
            for c in a.claims
            if c.resource == resource and not c.is_path
        )
        for a in attempts
    }
    if item is not None and claim is not None:
        asker = item.attempt if item.attempt in own else None
        own[asker] = own.get(asker, 0) + _size(shadow, claim)
    lines = []
    for holder in own:
        of = holder.item if holder is not None else item
        lines.append((list(of.above()) if of else [], holder))
    below: dict[ShadowAttempt | None, int] = {}
    total = 0
    for above, holder in sorted(lines, key=lambda line: -len(line[0])):
        used = max(own[holder], below.get(holder, 0))
        lender = next((a for a in above if a in own), None)
        if lender is None:
            total += used
        else:
            below[lender] = below.get(lender, 0) + used
    return total


def users(shadow: Shadow, resource: str) -> list[tuple[ShadowAttempt, Claim]]:
    """Alive attempts that hold some of a counted resource, each with its claim."""
    return [
        (a, c)
        for a in shadow.alive.values()
        for c in a.claims
        if c.resource == resource and not c.is_path
    ]


def _size(shadow: Shadow, claim: Claim) -> int:
    return shadow.capacities[claim.resource] if claim.mode is Mode.EXCLUSIVE else claim.amount

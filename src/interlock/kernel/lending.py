"""Taking and giving back amounts, with what children borrow from their ancestors.

A child may use what an ancestor holds. So what it takes is first borrowed from its ancestors, and
only the rest counts as used at the meter. What was borrowed goes back to the lender; if the lender
has been released before, it goes back to the meter.

Invariant: `meter.used` is the sum of what grants hold less what they borrowed, so a unit that a
parent holds and a child uses is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlock.kernel.meters import ALL, Meter
from interlock.kernel.waiters import Grant, Waiter


def take_amount(grant: Grant, meter: Meter, amount: int, waiter: Waiter, now: float) -> None:
    """Let a grant hold an amount that fits."""
    if meter.window is not None:
        meter.spend(amount, waiter.owner, now)
        return
    if amount == ALL:
        amount = meter.capacity
        meter.alone[grant] = None
    wanted = amount
    for lender in waiter.profile.lenders:
        part = min(wanted, lender.lendable(meter))
        if part > 0:
            lender.lend(meter, part)
            grant.loans += ((lender, meter, part),)
            wanted -= part
    meter.count(wanted)
    grant.hold(meter, amount)


def give_back_amounts(grant: Grant, others: Iterable[Grant]) -> None:
    """The holder has exited: what it took is free, or goes back to the lender."""
    borrowed = dict.fromkeys(grant.amounts, 0)
    for _, meter, amount in grant.loans:
        borrowed[meter] += amount
    if any(grant.lent.values()):
        for borrower in others:
            if borrower.loans:
                borrower.loans = tuple(_handed_down(grant, borrower))
    for lender, meter, amount in grant.loans:
        if lender.released:
            meter.count(-amount)
        else:
            lender.lend(meter, -amount)
    for meter, amount in grant.amounts.items():
        # What it lent out is still in use: the borrower gives it back.
        meter.count(borrowed[meter] + grant.lent.get(meter, 0) - amount)
        meter.alone.pop(grant, None)


def _handed_down(grant: Grant, borrower: Grant) -> Iterable[tuple[Grant, Meter, int]]:
    """Yield the loans of a borrower. What this grant had itself borrowed is owed further up."""
    for lender, meter, amount in borrower.loans:
        left = amount
        while lender is grant and left:
            source = next((loan for loan in grant.loans if loan[1] is meter), None)
            if source is None:
                break
            part = min(left, source[2])
            kept = [loan for loan in grant.loans if loan is not source]
            if source[2] > part:
                kept.append((source[0], meter, source[2] - part))
            grant.loans = tuple(kept)
            grant.lend(meter, -part)
            left -= part
            yield source[0], meter, part
        if left:
            yield lender, meter, left

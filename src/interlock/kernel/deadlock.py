"""Whether waits can ever end.

Only those who wait in mid-flight hold something while they wait, so only they can deadlock. The
test assumes the best of everybody else (a running agent ends, a zombie goes, a person answers)
and lets them all end, over and over, until nothing more can: whoever is left would hang for ever.

An attempt with several waits open may get one of them while it waits for the others. It is taken
to hold all it asks for already, so that whatever is granted first, nobody hangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.kernel.meters import ALL, Meter
from interlock.kernel.places import Place, places_conflict
from interlock.kernel.records import Attempt, Entry, WaitKind
from interlock.kernel.waiters import Amounts, Grant, Needs

if TYPE_CHECKING:
    from interlock.kernel.run import Run


def find_deadlocked(
    run: Run, parent: Attempt | None = None, children: Mapping[str, Entry] | None = None
) -> frozenset[tuple[Attempt, bool]]:
    """Who of those that wait could never end, also if a parent waited for these new children.

    Each is named with whether that is so only if the worst is assumed of several open waits.
    """
    worst = _OptimisticRun(run, parent, children or {}, assume=True).stuck()
    sure = _OptimisticRun(run, parent, children or {}, assume=False).stuck() if worst else ()
    return frozenset([(each, True) for each in worst] + [(each, False) for each in sure])


def would_outlive(
    run: Run, attempt: Attempt, tasks: Iterable[Entry], batch: Mapping[str, Entry]
) -> bool:
    """Whether one of these tasks, or what it comes after, ends no earlier than the attempt.

    That is its own task, and those of its ancestors: with their end it is over itself.
    """
    kin = set()
    above: Attempt | None = attempt
    while above is not None:
        kin.add(above.entry)
        above = above.entry.parent
    todo, seen = list(tasks), set()
    while todo:
        entry = todo.pop()
        if entry in kin:
            return True
        for task_id in entry.task.after:
            before = batch.get(task_id) or run.entries.get(task_id)
            if before is not None and task_id not in seen:
                seen.add(task_id)
                todo.append(before)
    return False


class _OptimisticRun:
    def __init__(
        self,
        run: Run,
        parent: Attempt | None,
        children: Mapping[str, Entry],
        *,
        assume: bool,
    ) -> None:
        self.run = run
        self.parent = parent
        self.children = children
        self.waiting = {request.attempt: None for request in run.requests.waiting}
        """Attempts that wait in mid-flight and are not known to end."""
        if parent is not None:
            self.waiting[parent] = None
        self.assumed = {
            attempt: list(_open_claims(attempt))
            for attempt in self.waiting
            if assume and _circular_waits(attempt) + (attempt is parent) > 1
        }
        """What attempts with several waits open may come to hold before the others are over."""

    def stuck(self) -> frozenset[Attempt]:
        changed = True
        while changed and self.waiting:
            changed = False
            for attempt in list(self.waiting):
                if self._can_end(attempt):
                    del self.waiting[attempt]
                    changed = True
        return frozenset(self.waiting)

    def _can_end(self, attempt: Attempt) -> bool:
        requests = attempt.requests.values()
        entries = [entry for request in requests for entry in request.tasks.values()]
        if attempt is self.parent:
            entries += self.children.values()
        if not all(map(self._task_ends, entries)):
            return False
        needs, amounts = _together(_open_claims(attempt))
        kin = attempt.ancestry()
        return self._could_have(needs, amounts, kin, kin[1:])

    def _task_ends(self, entry: Entry) -> bool:
        """Whether a task can start and end once everybody who is not stuck has ended."""
        todo, seen = [entry], {entry.task.id}
        while todo:
            entry = todo.pop()
            if entry.is_over:
                continue
            if entry.attempt is not None and not entry.attempt.ended:
                if entry.attempt in self.waiting or not self._could_try_again(entry, entry.attempt):
                    return False
                continue
            kin = entry.kin
            if not self._could_have(entry.needs, entry.amounts, kin, kin):
                return False
            for task_id in entry.task.after:
                before = self.children.get(task_id) or self.run.entries.get(task_id)
                if before is not None and task_id not in seen:
                    seen.add(task_id)
                    todo.append(before)
        return True

    def _could_try_again(self, entry: Entry, attempt: Attempt) -> bool:
        """Whether a task that runs could start once more, if this attempt comes to nothing.

        What it holds goes to others then. Those who end give it back; only one with several waits
        open may get it and go on waiting.
        """
        if not self.assumed or entry.attempts >= entry.task.retry.attempts:
            return True
        kin = entry.kin
        # Those below it come to their end with this attempt.
        others = [
            each for each in self.waiting if each not in kin and attempt not in each.ancestry()
        ]
        taken = [each for other in others for each in self._earlier(other, kin)]
        if any(_clash(needs, entry.needs) for needs, _ in taken):
            return False
        more = _sums(amounts for _, amounts in taken)
        return all(
            meter not in more or self._enough(meter, amount, more[meter], kin)
            for meter, amount in entry.amounts
        )

    def _could_have(
        self, needs: Needs, amounts: Amounts, kin: tuple[Grant, ...], lenders: tuple[Grant, ...]
    ) -> bool:
        """Whether claims could be granted if only the stuck attempts held something."""
        if not needs and not amounts:
            return True
        for grant in self.waiting:
            if grant not in kin and _clash(grant.places, needs):
                return False
        before = [
            each for other in self.waiting if other not in kin for each in self._earlier(other, kin)
        ]
        if any(_clash(theirs, needs) for theirs, _ in before):
            return False
        more = _sums(theirs for _, theirs in before)
        return all(
            self._enough(meter, amount, more.get(meter, 0), lenders) for meter, amount in amounts
        )

    def _earlier(self, stuck: Attempt, kin: tuple[Grant, ...]) -> Iterator[tuple[Needs, Amounts]]:
        """What a stuck attempt may be given while the kin still hold what they hold."""
        theirs = stuck.ancestry()
        strangers = [each for each in kin if each not in theirs]
        for needs, amounts in self.assumed.get(stuck, ()):
            fits = all(
                (amount or meter.most) + sum(each.amounts.get(meter, 0) for each in strangers)
                <= meter.most
                for meter, amount in amounts
            )
            if fits and not any(_clash(each.places, needs) for each in strangers):
                yield needs, amounts

    def _enough(self, meter: Meter, amount: int, more: int, lenders: tuple[Grant, ...]) -> bool:
        """Whether an amount is left beside the stuck attempts, with what the lenders can lend."""
        if meter.window is not None:
            return True
        holders: dict[Grant, None] = dict.fromkeys([*self.waiting, *lenders])
        loans = [
            (lender, part)
            for borrower in self.waiting
            for lender, lent, part in borrower.loans
            if lent is meter and lender in holders
        ]
        used = more + sum(grant.amounts.get(meter, 0) for grant in holders)
        used -= sum(part for _, part in loans)
        lendable = sum(grant.amounts.get(meter, 0) for grant in lenders)
        lendable -= sum(part for lender, part in loans if lender in lenders)
        if any(grant in holders and grant not in lenders for grant in meter.alone):
            return False
        if amount == ALL:
            return used == lendable
        # Where nobody stuck holds any, only a lowered capacity is in the way, and it can be raised.
        return used == lendable or amount <= max(0, meter.most - used) + lendable


def _clash(held: Iterable[tuple[Place, bool]], needs: Needs) -> bool:
    return any(
        (writes or held_for_writing) and places_conflict(place, other)
        for place, held_for_writing in held
        for other, writes in needs
    )


def _sums(claims: Iterable[Amounts]) -> dict[Meter, int]:
    total: dict[Meter, int] = {}
    for amounts in claims:
        for meter, amount in amounts:
            total[meter] = total.get(meter, 0) + (amount or meter.most)
    return total


def _circular_waits(attempt: Attempt) -> int:
    """How many waits an attempt has open that could be part of a circle."""
    waits = (WaitKind.CLAIMS, WaitKind.TASKS)
    return sum(request.waits_for in waits for request in attempt.requests.values())


def _open_claims(attempt: Attempt) -> Iterator[tuple[Needs, Amounts]]:
    """The claims that an attempt waits for, one request after the other."""
    for request in attempt.requests.values():
        if request.waiter is not None:
            yield request.waiter.needs, request.waiter.profile.amounts


def _together(claims: Iterable[tuple[Needs, Amounts]]) -> tuple[Needs, Amounts]:
    needs: list[tuple[Place, bool]] = []
    amounts: dict[Meter, int] = {}
    for some_needs, some_amounts in claims:
        needs += some_needs
        for meter, amount in some_amounts:
            everything = ALL in (amount, amounts.get(meter))
            amounts[meter] = ALL if everything else amounts.get(meter, 0) + amount
    return tuple(needs), tuple(amounts.items())

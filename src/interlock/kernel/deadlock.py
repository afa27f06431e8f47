"""The deadlock test: whether requests in mid-flight can ever be answered.

Only a request holds something while it waits, so only requests can deadlock. Before one begins to
wait, this test plays an *optimistic run*: every other running attempt ends, every zombie exits,
every person answers, every rate refills. Attempts whose requests can then be answered end too, and
release what they hold; that is repeated until nothing changes. The attempts that are left could
never go on, whatever happens: they are deadlocked.

Why it is right. *What it reports is a deadlock*: in the optimistic run every attempt outside the
stuck set has ended and holds nothing, and still no member of the set can go on; no real run can do
better. *It reports every deadlock* that is there at this moment, since the order in which attempts
are let end does not matter: an end only frees what others need. It is tested before each new wait,
and `extend`, `await_tasks` and submissions of children are the only ways to begin one; so no
deadlock can come to be.

An attempt with several requests open may be granted one of them while it waits for the others. The
test takes it to hold everything it asks for already (`assume`), so that there is no deadlock
whatever is granted first. A wait may be denied for that reason although luck would have let it end.

Cost: the square of the waiting attempts, times their claims. Tasks in the queue count only where an
attempt waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from interlock.kernel.meters import ALL, Meter
from interlock.kernel.places import Place, places_conflict
from interlock.kernel.records import Attempt, Entry, Request, WaitKind
from interlock.kernel.waiters import Amounts, Grant, Needs


class Waits(Protocol):
    """What the test needs to know of a run."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The unfinished tasks."""

    @property
    def open_requests(self) -> Iterable[Request]:
        """The requests that have not been answered."""


def find_deadlocked(
    run: Waits, parent: Attempt | None = None, children: Mapping[str, Entry] | None = None
) -> frozenset[tuple[Attempt, bool]]:
    """Return the waiting attempts that could never go on, also if a parent awaited new children.

    Each comes with whether that is so only under the worst assumption about several open requests.
    """
    worst = _OptimisticRun(run, parent, children or {}, assume=True).stuck()
    sure = _OptimisticRun(run, parent, children or {}, assume=False).stuck() if worst else ()
    return frozenset([(each, True) for each in worst] + [(each, False) for each in sure])


def would_outlive(
    run: Waits, attempt: Attempt, tasks: Iterable[Entry], batch: Mapping[str, Entry]
) -> bool:
    """Whether one of these tasks, or one it comes after, ends no earlier than the attempt.

    These are the attempt's own task and those of its ancestors, whose end would end it too.
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
    """Lets attempts end for as long as one can; `stuck` returns those that cannot."""

    def __init__(
        self,
        run: Waits,
        parent: Attempt | None,
        children: Mapping[str, Entry],
        *,
        assume: bool,
    ) -> None:
        self.run = run
        self.parent = parent
        self.children = children
        self.waiting = {request.attempt: None for request in run.open_requests}
        """Attempts with open requests that are not known to end."""
        if parent is not None:
            self.waiting[parent] = None
        self.assumed = {
            attempt: list(_open_claims(attempt))
            for attempt in self.waiting
            if assume and _circular_waits(attempt) + (attempt is parent) > 1
        }
        """What attempts with several open requests may be granted before the last is answered."""

    def stuck(self) -> frozenset[Attempt]:
        """Return the attempts that can never go on."""
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
        """Whether a task can start and end once every attempt that is not waiting has ended."""
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
        """Whether a running task could start once more, if this attempt fails.

        Then others may be granted what it held. Those that end give it back; only an attempt with
        several open requests may be granted it and go on waiting.
        """
        if not self.assumed or entry.attempts >= entry.task.retry.attempts:
            return True
        kin = entry.kin
        # Its descendants end with this attempt.
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
        """Whether claims could be granted if only the waiting attempts held something."""
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
        """Yield what a waiting attempt may be granted while the kin still hold what they hold."""
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
        """Whether an amount is left beside the waiting attempts, with what the lenders can lend."""
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
        # If no waiting attempt holds any, only a lowered capacity is in the way: it can be raised.
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
    """Return how many open requests of an attempt could be part of a cycle of waits."""
    waits = (WaitKind.CLAIMS, WaitKind.TASKS)
    return sum(request.waits_for in waits for request in attempt.requests.values())


def _open_claims(attempt: Attempt) -> Iterator[tuple[Needs, Amounts]]:
    """Yield the claims that an attempt waits for, request by request."""
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

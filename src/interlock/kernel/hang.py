"""Whether waits can ever end.

Only those who wait in mid-flight hold something while they wait, so only they can deadlock. The
test assumes the best of everybody else (a running agent ends, a zombie goes, a person answers)
and lets them all end, over and over, until nothing more can: whoever is left would hang for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from interlock.kernel.meters import ALL, Meter
from interlock.kernel.places import places_conflict
from interlock.kernel.records import Attempt, Entry, Request, Wait
from interlock.kernel.waiters import Amounts, Grant, Needs

if TYPE_CHECKING:
    from interlock.kernel.run import Run


def can_all_end(
    run: Run, attempts: Sequence[Attempt], children: Mapping[str, Entry] | None = None
) -> bool:
    """Whether these attempts can end, with these new children of the first to wait for."""
    return _Hope(run, attempts[0], children or {}).reaches(attempts)


class _Hope:
    def __init__(self, run: Run, parent: Attempt, children: Mapping[str, Entry]) -> None:
        self.run = run
        self.parent = parent
        self.children = children
        self.stuck: dict[Grant, Attempt] = {}
        """Attempts that wait in mid-flight and are not known to end."""
        for request in run.midflight.waiting:
            self.stuck[request.grant] = request.attempt
        if children:
            self.stuck[parent.grant] = parent

    def reaches(self, attempts: Sequence[Attempt]) -> bool:
        changed = True
        while changed and any(attempt.grant in self.stuck for attempt in attempts):
            changed = False
            for grant, attempt in list(self.stuck.items()):
                if self._can_end(attempt):
                    del self.stuck[grant]
                    changed = True
        return not any(attempt.grant in self.stuck for attempt in attempts)

    def _can_end(self, attempt: Attempt) -> bool:
        if attempt is self.parent and not all(map(self._task_ends, self.children.values())):
            return False
        return all(map(self._request_ends, attempt.requests.values()))

    def _request_ends(self, request: Request) -> bool:
        if request.wait is Wait.CHILDREN:
            return all(map(self._task_ends, request.children.values()))
        waiter = request.waiter
        if waiter is None:
            return True
        profile = waiter.profile
        return self._could_have(waiter.needs, profile.amounts, profile.kin, profile.lenders)

    def _task_ends(self, entry: Entry) -> bool:
        """Whether a task can start and end once everybody who is not stuck has ended."""
        todo, seen = [entry], {entry.task.id}
        while todo:
            entry = todo.pop()
            if entry.state is not None and entry.state.is_end:
                continue
            if entry.attempt is not None and not entry.attempt.ended:
                if entry.attempt.grant in self.stuck:
                    return False
                continue
            kin = entry.parent.ancestry() if entry.parent is not None else ()
            if not self._could_have(entry.needs, entry.amounts, kin, kin):
                return False
            for task_id in entry.task.after:
                before = self.children.get(task_id) or self.run.entries.get(task_id)
                if before is not None and task_id not in seen:
                    seen.add(task_id)
                    todo.append(before)
        return True

    def _could_have(
        self, needs: Needs, amounts: Amounts, kin: tuple[Grant, ...], lenders: tuple[Grant, ...]
    ) -> bool:
        """Whether claims could be granted if only the stuck attempts held something."""
        for grant in self.stuck:
            if grant in kin:
                continue
            for held, held_for_writing in grant.places:
                for place, writes in needs:
                    if (writes or held_for_writing) and places_conflict(held, place):
                        return False
        return all(self._enough(meter, amount, lenders) for meter, amount in amounts)

    def _enough(self, meter: Meter, amount: int, lenders: tuple[Grant, ...]) -> bool:
        """Whether an amount is left beside the stuck attempts, with what the lenders can lend."""
        if meter.window is not None:
            return True
        holders = dict.fromkeys([*self.stuck, *lenders])
        loans = [
            (lender, part)
            for borrower in self.stuck
            for lender, lent, part in borrower.loans
            if lent is meter and lender in holders
        ]
        used = sum(grant.amounts.get(meter, 0) for grant in holders)
        used -= sum(part for _, part in loans)
        lendable = sum(grant.amounts.get(meter, 0) for grant in lenders)
        lendable -= sum(part for lender, part in loans if lender in lenders)
        if any(grant in holders and grant not in lenders for grant in meter.alone):
            return False
        if amount == ALL:
            return used == lendable
        # Where nobody stuck holds any, only a lowered capacity is in the way, and it can be raised.
        foreign = used - lendable
        return not foreign or foreign + amount <= meter.capacity

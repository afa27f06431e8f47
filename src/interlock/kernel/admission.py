"""Who may start: all claims and a slot at once, in order, at a cost that does not grow with the queue.

Every waiter is in one of two places. Either it *watches* one point that blocks it, or it is
*ready*: its places were free when last looked at, and it waits for capacity. When a point is
released, its watchers are woken best first, until one of them is ready; that one *carries* the
wake-up. The others stay where they are, although the point may be free now, because the carrier
comes before them. When the carrier starts, leaves or turns out to be blocked elsewhere, it passes
the wake-up on. So a release costs a few looks and not one look at everybody.

What makes that right: among waiters with the same profile (they lack the same capacity), whoever
watches a point that does not block it has a better one in front of it that is ready and carries
that point. Hence when nothing is ready any more, or capacity is out, nobody who could start is
left waiting. The oracle in `testing` checks just that after every step.

Bounded overtaking: see `lines`. Whoever has been overtaken too often at one of its points becomes
*due*: its claims are reserved, which counts like a hold for everybody younger.
"""

from __future__ import annotations

from heapq import heappop, heappush

from interlock.kernel.lines import Line
from interlock.kernel.meters import ALL, Meter, Spent
from interlock.kernel.places import Glob, Point
from interlock.kernel.table import Table, grant_blocks
from interlock.kernel.waiters import Amounts, Grant, Key, Profile, Shelf, Waiter, first

FIRST: float = float("-inf")
"""Stands before every priority in a key: waits in mid-flight."""
URGENT: float = -1e300
"""Stands before every priority but `FIRST`: overtaken too often while lacking only capacity."""


class Admission:
    """The queue in front of the claim table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.slots = table.slots
        self.turn = 0
        self.halted = False
        """Nothing new starts; waits in mid-flight are still served."""
        self.profiles: dict[object, Profile] = {}
        self.grants: dict[Grant, None] = {}
        self.zombies: dict[Grant, None] = {}
        self.due: dict[Waiter, None] = {}
        self.urgent: dict[Waiter, None] = {}
        """Waiters for which a meter is reserved."""
        self._open: list[tuple[Key, int, Profile]] = []
        """A heap of the profiles that have somebody ready and are not known to lack capacity."""
        self._seated: list[tuple[Key, int, Profile]] = []
        """The same for those who need no slot."""
        self._serial = 0

    def profile(self, amounts: Amounts, kin: tuple[Grant, ...], seated: bool) -> Profile:
        """The profile of those amounts and ancestors."""
        key = (amounts, kin, seated)
        found = self.profiles.get(key)
        if found is None:
            found = self.profiles[key] = Profile(key, amounts, kin, seated)
        return found

    # -- waiting ------------------------------------------------------------------------

    def enqueue(self, waiter: Waiter) -> None:
        """Let a waiter wait; `admit` follows."""
        waiter.profile.count += 1
        if not waiter.midflight:
            for line in waiter.lines:
                line.join(waiter)
            self.slots.line.join(waiter)
            for meter, _ in waiter.profile.amounts:
                meter.line.join(waiter)
        blocked = self.table.blocker(waiter)
        if blocked is None:
            self._make_ready(waiter, None)
        else:
            _shelve(waiter, *blocked)

    def withdraw(self, waiter: Waiter) -> None:
        """A waiter gives up; whoever it kept waiting gets its chance. `admit` follows."""
        self._leave(waiter)
        if waiter.due:
            self._unreserve(waiter)
            for place, _ in waiter.needs:
                for point in place.marks:
                    self._wake(point)
        self._pass_on(waiter)

    def rekey(self, waiter: Waiter, key: Key) -> None:
        """Give a waiter another place in the order."""
        was_ready = waiter.profile.ready
        in_ready = any(item is waiter and old is waiter.key for old, item in was_ready)
        waiter.key = key
        if in_ready:
            self._make_ready(waiter, waiter.carry)
            return
        blocked = self.table.blocker(waiter)
        if blocked is None:
            self._make_ready(waiter, None)
        else:
            _shelve(waiter, *blocked)

    def _leave(self, waiter: Waiter) -> None:
        waiter.alive = False
        profile = waiter.profile
        profile.count -= 1
        if not profile.count:
            self.profiles.pop(profile.key, None)
        if waiter in self.urgent:
            self._calm(waiter)
        if waiter.midflight:
            return
        for line in waiter.lines:
            head = line.left(waiter)
            if head is not None and line.passed:
                self._consider(line, head)
        self.slots.line.left(waiter)
        for meter, _ in profile.amounts:
            meter.line.left(waiter)

    def _make_ready(self, waiter: Waiter, carry: Point | None) -> None:
        waiter.carry = carry
        profile = waiter.profile
        heappush(profile.ready, (waiter.key, waiter))
        listed = profile.listed
        if listed is None or waiter.key < listed[0]:
            self._list(profile, waiter.key)

    def _list(self, profile: Profile, key: Key) -> None:
        self._serial += 1
        profile.listed = (key, self._serial, profile)
        heappush(self._seated if profile.seated else self._open, profile.listed)

    # -- waking -------------------------------------------------------------------------

    def _wake(self, point: Point) -> None:
        if point.shelves:
            for profile in list(point.shelves):
                self._wake_profile(point, profile)

    def _pass_on(self, waiter: Waiter) -> None:
        point = waiter.carry
        if point is not None:
            waiter.carry = None
            if point.shelves and waiter.profile in point.shelves:
                self._wake_profile(point, waiter.profile)

    def _wake_profile(self, point: Point, profile: Profile) -> None:
        """Wake watchers of a point, best first, until one of them is ready."""
        shelves = point.shelves
        assert shelves is not None
        shelf = shelves[profile]
        kept: list[tuple[Key, Waiter, bool]] = []
        while True:
            # With kin, what is held here may be the ancestors': only a full look can tell.
            reader = first(shelf.readers) if not point.writers or profile.kin else None
            writer = None
            if not (point.writers or point.readers) or profile.kin:
                writer = first(shelf.writers)
            if reader is not None and (writer is None or reader.key < writer.key):
                waiter, heap = reader, shelf.readers
            elif writer is not None:
                waiter, heap = writer, shelf.writers
            else:
                break
            heappop(heap)
            blocked = self.table.blocker(waiter)
            if blocked is None:
                self._make_ready(waiter, point)
                break
            if blocked[0] is point:
                kept.append((waiter.key, waiter, blocked[1]))
            else:
                _shelve(waiter, *blocked)
        for key, waiter, writes in kept:
            heappush(shelf.writers if writes else shelf.readers, (key, waiter))
        if not shelf.readers and not shelf.writers:
            del shelves[profile]

    # -- starting -----------------------------------------------------------------------

    def admit(self, now: float) -> list[tuple[Waiter, Grant]]:
        """Grant whatever can be granted now, best first."""
        granted: list[tuple[Waiter, Grant]] = []
        if self._seated:
            self._admit_from(self._seated, granted, now)
        self._admit_from(self._open, granted, now)
        return granted

    def _admit_from(
        self,
        opened: list[tuple[Key, int, Profile]],
        granted: list[tuple[Waiter, Grant]],
        now: float,
    ) -> None:
        slots, seated = self.slots, opened is self._seated
        while opened and (seated or slots.used < slots.capacity):
            item = opened[0]
            profile = item[2]
            if item is not profile.listed:
                heappop(opened)
                continue
            waiter = profile.best()
            if waiter is None:
                heappop(opened)
                profile.listed = None
                continue
            if waiter.key is not item[0]:
                heappop(opened)
                self._list(profile, waiter.key)
                continue
            if self.halted and not waiter.midflight:
                break
            meter = profile.short(waiter)
            if meter is not None:
                heappop(opened)
                profile.listed = None
                meter.watchers.append(profile)
                continue
            heappop(profile.ready)
            blocked = self.table.blocker(waiter)
            if blocked is not None:
                _shelve(waiter, *blocked)
                self._pass_on(waiter)
                if waiter in self.urgent:
                    self._calm(waiter)
                continue
            granted.append((waiter, self._grant(waiter, now)))

    def _grant(self, waiter: Waiter, now: float) -> Grant:
        if not waiter.exempt:
            self._overtake(waiter)
        self._leave(waiter)
        if waiter.due:
            self._unreserve(waiter)
        grant = waiter.owner.grant if waiter.midflight else Grant(waiter.owner)
        if not waiter.profile.seated:
            self.slots.used += 1
            grant.holds_slot = True
        self.take(grant, waiter, now)
        self._pass_on(waiter)
        if self.urgent:
            for other in list(self.urgent):
                if self.table.blocker(other) is not None:
                    self._calm(other)
        return grant

    def take(self, grant: Grant, waiter: Waiter, now: float) -> None:
        """Hold what the waiter needs, but for the slot."""
        self.grants[grant] = None
        self.table.mark(waiter.needs, 1)
        grant.places.extend(waiter.needs)
        for meter, amount in waiter.profile.amounts:
            self._take_amount(grant, meter, amount, waiter, now)

    def _take_amount(
        self, grant: Grant, meter: Meter, amount: int, waiter: Waiter, now: float
    ) -> None:
        if meter.window is not None:
            meter.used += amount
            meter.spent.append(Spent(now, amount, waiter.owner))
            return
        if amount == ALL:
            amount = meter.capacity
            meter.alone = grant if meter.alone is None else meter.alone
        wanted = amount
        for lender in waiter.profile.kin:
            part = min(wanted, lender.lendable(meter))
            if part > 0 and lender is not grant:
                lender.lent[meter] = lender.lent.get(meter, 0) + part
                grant.loans.append((lender, meter, part))
                wanted -= part
        meter.used += wanted
        grant.amounts[meter] = grant.amounts.get(meter, 0) + amount

    # -- releasing ----------------------------------------------------------------------

    def release(self, grant: Grant) -> None:
        """The holder is gone: give everything back. `admit` follows."""
        del self.grants[grant]
        grant.released = True
        self.table.mark(grant.places, -1)
        self._release_amounts(grant)
        if grant.holds_slot:
            self.lend_slot(grant)
        for place, _ in grant.places:
            for point in place.marks:
                if point.shelves:
                    self._wake(point)
        grant.places = []
        if grant.zombie:
            del self.zombies[grant]
            for meter in grant.amounts:
                meter.zombies -= 1
            self._review_due()

    def _release_amounts(self, grant: Grant) -> None:
        borrowed: dict[Meter, int] = {}
        for lender, meter, amount in grant.loans:
            borrowed[meter] = borrowed.get(meter, 0) + amount
            if lender.released:
                meter.used -= amount
            else:
                lender.lent[meter] -= amount
        for meter, amount in grant.amounts.items():
            # What it lent out is still in use; the borrower gives it back.
            meter.used -= amount - borrowed.get(meter, 0) - grant.lent.get(meter, 0)
            if meter.alone is grant:
                meter.alone = None
            self.reopen(meter)

    def lend_slot(self, grant: Grant) -> None:
        """The holder waits in mid-flight: its slot is free for others."""
        grant.holds_slot = False
        self.slots.used -= 1

    def reopen(self, meter: Meter) -> None:
        """There is more of a meter: look again at those who lacked it."""
        if meter.watchers:
            watchers, meter.watchers = meter.watchers, []
            for profile in watchers:
                waiter = profile.best()
                if waiter is not None and profile.listed is None:
                    self._list(profile, waiter.key)

    def make_zombie(self, grant: Grant) -> None:
        """The holder was told to stop. Whoever it blocks holds nobody back meanwhile."""
        if not grant.zombie:
            grant.zombie = True
            self.zombies[grant] = None
            for meter in grant.amounts:
                meter.zombies += 1
                if meter.reserved is not None:
                    self.reopen(meter)
            self._review_due()

    # -- bounded overtaking ---------------------------------------------------------------

    def _limit(self, line: Line) -> int:
        """How often the first in a line may be overtaken there."""
        return max(1, 2 * self.slots.capacity // line.most_shares)

    def _overtake(self, waiter: Waiter) -> None:
        """Count those whom this start goes past."""
        passed: dict[Line, None] = {}
        for place, writes in waiter.needs:
            for lines in place.passes:
                if lines.writers is not None:
                    passed[lines.writers] = None
                if writes and lines.readers is not None:
                    passed[lines.readers] = None
        for line in passed:
            if line.live:
                self._pass(line, waiter)
        self._pass_meter(self.slots, waiter)
        for meter, _ in waiter.profile.amounts:
            self._pass_meter(meter, waiter)

    def _pass(self, line: Line, waiter: Waiter) -> None:
        head = line.items[0]
        if head.turn < waiter.turn:
            line.passed.append(waiter.turn)
            self._consider(line, head)

    def _consider(self, line: Line, head: Waiter) -> None:
        """Reserve for the first in line when it was overtaken too often."""
        if self.zombies:
            for head in line.items:
                if head.alive and not self._zombie_blocks(head):
                    break
            else:
                return
        if not head.due and line.overtaken(head) >= self._limit(line):
            head.due = True
            self.due[head] = None
            for place, writes in head.needs:
                for point in place.marks:
                    point.reserved = [*point.reserved, (head, writes)]
                if isinstance(place, Glob):
                    self.table.use_pattern(place, 1)

    def overtaken(self, waiter: Waiter) -> int:
        """How often a waiter has been overtaken, over all lines in which it stands."""
        return sum(line.overtaken(waiter) for line in waiter.lines)

    def _unreserve(self, waiter: Waiter) -> None:
        del self.due[waiter]
        for place, _ in waiter.needs:
            for point in place.marks:
                point.reserved = [item for item in point.reserved if item[0] is not waiter] or ()
            if isinstance(place, Glob):
                self.table.use_pattern(place, -1)

    def _review_due(self) -> None:
        """Zombies came or went: whoever is blocked by one holds nobody back."""
        for waiter in list(self.due):
            suspended = self._zombie_blocks(waiter)
            if suspended and not waiter.suspended:
                waiter.suspended = True
                for place, _ in waiter.needs:
                    for point in place.marks:
                        self._wake(point)
            waiter.suspended = suspended

    def _zombie_blocks(self, waiter: Waiter) -> bool:
        return any(grant_blocks(grant, waiter) for grant in self.zombies)

    def _pass_meter(self, meter: Meter, waiter: Waiter) -> None:
        """Capacity counts as overtaken only where it is all that the oldest waiter lacks."""
        line = meter.line
        head = line.items[0]
        if head.turn >= waiter.turn or meter.zombies or self.table.blocker(head) is not None:
            return
        if meter is self.slots and head.profile.short(head) is not None:
            return
        line.passed.append(waiter.turn)
        if head not in self.urgent and line.overtaken(head) >= self._limit(line):
            self.urgent[head] = None
            if meter is not self.slots:
                meter.reserved = head
            head.key = (URGENT, 0.0, 0.0, head.key[3])
            self._make_ready(head, head.carry)

    def _calm(self, waiter: Waiter) -> None:
        """A waiter that meters were reserved for has started, left, or lacks more than capacity."""
        del self.urgent[waiter]
        for meter, _ in waiter.profile.amounts:
            if meter.reserved is waiter:
                meter.reserved = None
                self.reopen(meter)


def _shelve(waiter: Waiter, point: Point, writes: bool) -> None:
    """Let a waiter watch the point that blocks it."""
    if point.shelves is None:
        point.shelves = {}
    shelf = point.shelves.get(waiter.profile)
    if shelf is None:
        shelf = point.shelves[waiter.profile] = Shelf()
    heappush(shelf.writers if writes else shelf.readers, (waiter.key, waiter))

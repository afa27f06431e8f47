"""Who may start: all claims and a slot at once, in order, at a cost that does not grow.

Every waiter is on one shelf: of a point that blocks it, or of those whom nothing blocks. When a
point is released, its shelf is listed; nobody is looked at yet. When there is capacity, the best
waiter of the best listed shelf is looked at. Either it starts, or something else blocks it now
and it moves there. So a release costs one entry in a heap, a start a few looks, and nothing looks
at everybody.

What makes that right: a waiter that could start is always on a listed shelf, and shelves are
listed under their best waiter. Hence the best one that can start is found, and when nothing is
listed any more, or capacity is out, nobody who could start is left waiting. The oracle in
`testing` checks just that after every step.

Bounded overtaking: whoever has been overtaken 2 x slots times closes its lines (see `lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from interlock.kernel.lending import give_back_amounts, take_amount
from interlock.kernel.lines import Line
from interlock.kernel.meters import Meter
from interlock.kernel.shelves import Point, Shelf
from interlock.kernel.table import Table, grant_blocks, waiters_conflict
from interlock.kernel.waiters import Amounts, Grant, Key, Needs, Profile, Waiter

FIRST: float = float("-inf")
"""Stands before every priority in a key: waits in mid-flight."""
RESERVED: float = -1e301
"""Stands next: amounts are kept for it."""
URGENT: float = -1e300
"""Stands before every priority: overtaken too often."""

_LOOKS = 3
"""At how many waiters a start looks to find one that lacks only capacity."""

_Opened = list[tuple[Key, int, Profile]]


class Admission:
    """The queue in front of the claim table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.slots = table.slots
        self.turn = 0
        self.paused = False
        """Nothing starts; waits in mid-flight are still served."""
        self.draining = False
        """Nothing new starts, but for what something that runs may be waiting for."""
        self.profiles: dict[object, Profile] = {}
        self.grants = table.grants
        self.zombies: dict[Grant, None] = {}
        self.closers: dict[Waiter, None] = {}
        """Waiters that nobody younger may pass, unless a zombie blocks them."""
        self.reserved: dict[Waiter, None] = {}
        """Waiters that lack only capacity, and after which nobody may take any."""
        self._opened: _Opened = []
        """A heap of the profiles that have a shelf listed and are not known to lack capacity."""
        self._seated: _Opened = []
        """The same for those who need no slot."""
        self._serial = 0
        self._waiting_to_resume: dict[Profile, None] = {}
        """Profiles that a pause or a drain keeps from starting."""

    def resume(self) -> None:
        """A pause is over: look again at those it held back. `admit` follows."""
        self.paused = False
        profiles, self._waiting_to_resume = self._waiting_to_resume, {}
        self._relist(profiles)

    def _held_back(self, waiter: Waiter) -> bool:
        if waiter.midflight:
            return False
        return self.paused or (self.draining and not waiter.profile.exempt)

    def profile(
        self,
        amounts: Amounts,
        kin: tuple[Grant, ...] = (),
        *,
        midflight: bool = False,
        seated: bool = False,
        needed: bool = False,
    ) -> Profile:
        """The profile of those who need these amounts."""
        key = (amounts, kin, midflight, seated, needed)
        found = self.profiles.get(key)
        if found is None:
            found = self.profiles[key] = Profile(key)
        return found

    def forget_profile(self, profile: Profile) -> None:
        """Drop a profile with which nobody waits any more."""
        if not profile.count:
            self.profiles.pop(profile.key, None)
            self._waiting_to_resume.pop(profile, None)
            if profile.lacks is not None:
                profile.lacks.watchers.pop(profile, None)

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
        self._place(waiter)

    def withdraw(self, waiter: Waiter) -> None:
        """A waiter gives up; whoever it kept waiting gets its chance. `admit` follows."""
        self._leave(waiter)

    def let_pass(self, waiter: Waiter) -> None:
        """Something that runs waits for this one: it passes reservations from now on.

        What the due one waits for may be that very attempt, so to hold this one back could be a
        deadlock. It keeps its age.
        """
        old = waiter.profile
        if old.exempt:
            return
        old.count -= 1
        self.forget_profile(old)
        waiter.profile = self.profile(old.amounts, needed=True)
        waiter.profile.count += 1
        self._place(waiter)

    def prioritize(self, waiter: Waiter, priority: int) -> None:
        """Give a waiter another priority; whoever nobody may pass stays first all the same."""
        if waiter.key[0] > URGENT:
            self._rekey(waiter, (-priority, *waiter.key[1:]))

    def _rekey(self, waiter: Waiter, key: Key) -> None:
        waiter.key = key
        shelf = waiter.shelf
        assert shelf is not None
        heappush(shelf.heap(waiter.writes_there), (key, waiter))
        self._list_shelf(shelf)

    def _place(self, waiter: Waiter) -> None:
        """Put a waiter on the shelf of what blocks it, or with those whom nothing blocks."""
        blocked = self.table.blocker(waiter)
        if blocked is None:
            shelf = waiter.profile.free
            waiter.shelf, waiter.writes_there = shelf, True
            heappush(shelf.writers, (waiter.key, waiter))
            self._list_shelf(shelf)
            return
        self._shelve(waiter, *blocked)

    def _shelve(self, waiter: Waiter, point: Point, writes: bool, parked: bool) -> None:
        if point.shelves is None:
            point.shelves = {}
        shelf = point.shelves.get(waiter.profile)
        if shelf is None:
            shelf = point.shelves[waiter.profile] = Shelf(waiter.profile, point)
        waiter.shelf, waiter.writes_there = shelf, writes
        if parked:
            shelf.parked.append((waiter, writes))
        else:
            heappush(shelf.heap(writes), (waiter.key, waiter))

    def _leave(self, waiter: Waiter) -> None:
        waiter.alive = False
        profile = waiter.profile
        profile.count -= 1
        self.forget_profile(profile)
        if waiter in self.reserved:
            self._unreserve(waiter)
        if waiter.midflight:
            return
        for line in waiter.lines:
            line.leave(waiter)
        self.slots.line.leave(waiter)
        for meter, _ in profile.amounts:
            meter.line.leave(waiter)
        if waiter in self.closers:
            del self.closers[waiter]
            self._open_lines(waiter)

    # -- listing ------------------------------------------------------------------------

    def _list_shelf(self, shelf: Shelf) -> None:
        """Somebody on a shelf might be able to start now."""
        best = shelf.best()
        if best is None:
            return
        key = best[0].key
        if shelf.listed is None or key < shelf.listed[0]:
            self._serial += 1
            shelf.listed = (key, self._serial, shelf)
            profile = shelf.profile
            heappush(profile.shelves, shelf.listed)
            if profile.listed is None or key < profile.listed[0]:
                self._list_profile(profile, key)

    def _list_profile(self, profile: Profile, key: Key) -> None:
        self._serial += 1
        profile.listed = (key, self._serial, profile)
        heappush(self._seated if profile.seated else self._opened, profile.listed)

    def _best(self, profile: Profile) -> tuple[Waiter, bool] | None:
        """The first waiter of a profile that might be able to start, and whether it writes."""
        shelves = profile.shelves
        while shelves:
            item = shelves[0]
            shelf = item[2]
            if item is not shelf.listed:
                heappop(shelves)
                continue
            best = shelf.best()
            if best is None:
                heappop(shelves)
                shelf.listed = None
                _drop_if_empty(shelf)
            elif best[0].key is item[0]:
                return best
            else:
                heappop(shelves)
                shelf.listed = None
                self._list_shelf(shelf)
        return None

    def _released(self, point: Point) -> None:
        """Less is held at a point: those who watch it may have a chance."""
        if point.shelves:
            for shelf in list(point.shelves.values()):
                self._list_shelf(shelf)

    def _unpark(self, shelf: Shelf) -> None:
        parked, shelf.parked = shelf.parked, []
        for waiter, writes in parked:
            if waiter.alive and waiter.shelf is shelf:
                heappush(shelf.heap(writes), (waiter.key, waiter))

    # -- starting -----------------------------------------------------------------------

    def admit(self, now: float) -> Iterator[tuple[Waiter, Grant]]:
        """Grant whatever can be granted now, best first; each is taken in before the next."""
        self._review_reserved()
        if self._seated:
            yield from self._admit_from(self._seated, now)
        yield from self._admit_from(self._opened, now)

    def _admit_from(self, opened: _Opened, now: float) -> Iterator[tuple[Waiter, Grant]]:
        slots, seated = self.slots, opened is self._seated
        while opened and (seated or slots.used < slots.capacity):
            item = opened[0]
            profile = item[2]
            if item is not profile.listed:
                heappop(opened)
                continue
            best = self._best(profile)
            if best is None:
                heappop(opened)
                profile.listed = None
                continue
            waiter, writes = best
            if waiter.key is not item[0]:
                heappop(opened)
                self._list_profile(profile, waiter.key)
                continue
            if self._held_back(waiter):
                heappop(opened)
                profile.listed = None
                self._waiting_to_resume[profile] = None
                continue
            meter = profile.short(waiter)
            if meter is not None:
                heappop(opened)
                profile.listed = None
                meter.watchers[profile] = None
                profile.lacks = meter
                continue
            shelf = waiter.shelf
            assert shelf is not None
            heappop(shelf.heap(writes))
            blocked = self.table.blocker(waiter)
            if blocked is None:
                yield waiter, self._grant(waiter, now)
                continue
            if waiter in self.reserved:
                self._unreserve(waiter)
            if blocked[0] is shelf.point and blocked[1] is writes:
                shelf.parked.append((waiter, writes))
            else:
                self._shelve(waiter, *blocked)

    def _grant(self, waiter: Waiter, now: float) -> Grant:
        if not waiter.exempt:
            self._overtake(waiter)
        self._leave(waiter)
        if waiter.midflight:
            grant: Grant = waiter.owner.grant
        else:
            grant = Grant(waiter.owner, now, waiter.estimate)
        if not waiter.profile.seated:
            self.slots.used += 1
            grant.holds_slot = True
        self.take(grant, waiter, now)
        self._review_reserved()
        return grant

    def take(self, grant: Grant, waiter: Waiter, now: float) -> None:
        """Hold what the waiter needs, but for the slot."""
        self.grants[grant] = None
        self.table.mark(waiter.needs, 1)
        grant.places.extend(waiter.needs)
        for meter, amount in waiter.profile.amounts:
            take_amount(grant, meter, amount, waiter, now)

    # -- releasing ----------------------------------------------------------------------

    def release(self, grant: Grant) -> None:
        """The holder is gone: give everything back. `admit` follows."""
        del self.grants[grant]
        grant.released = True
        places, grant.places = grant.places, []
        self.table.mark(places, -1)
        if grant.amounts:
            give_back_amounts(grant, self.grants)
            for meter in grant.amounts:
                self.reopen(meter)
        if grant.holds_slot:
            self.lend_slot(grant)
        for place, _ in places:
            for point in place.marks:
                self._released(point)
        if grant.zombie:
            del self.zombies[grant]
            for meter in grant.amounts:
                meter.zombies -= 1
            self._review_closers()

    def occupy(self, owner: Any, needs: Needs, amounts: Amounts, now: float) -> Grant:
        """Something outside holds this, whoever else does: to others it is a zombie."""
        grant = Grant(owner, now, None)
        profile = Profile((amounts, (), False, True, False))
        self.take(grant, Waiter(owner, needs, profile, self.turn, (0.0, 0.0, 0.0, 0)), now)
        self.make_zombie(grant)
        return grant

    def lend_slot(self, grant: Grant) -> None:
        """The holder waits in mid-flight: its slot is free for others."""
        grant.holds_slot = False
        self.slots.used -= 1

    def reopen(self, meter: Meter) -> None:
        """There is more of a meter: look again at those who lacked it."""
        if meter.watchers:
            watchers, meter.watchers = meter.watchers, {}
            self._relist(watchers)

    def _relist(self, profiles: Iterable[Profile]) -> None:
        for profile in profiles:
            profile.lacks = None
            best = self._best(profile)
            if best is not None and profile.listed is None:
                self._list_profile(profile, best[0].key)

    def make_zombie(self, grant: Grant) -> None:
        """The holder was told to stop. Whoever it blocks holds nobody back meanwhile."""
        if not grant.zombie:
            grant.zombie = True
            self.zombies[grant] = None
            for meter in grant.amounts:
                meter.zombies += 1
                if meter.reserved is not None:
                    self.reopen(meter)
            self._review_closers()

    # -- bounded overtaking ---------------------------------------------------------------

    def _overtake(self, waiter: Waiter) -> None:
        """Count those whom this start goes past."""
        passed: dict[Line, None] = {}
        for place, writes in waiter.needs:
            for lines in place.passes:
                line = lines.writers
                if line is not None and line.live:
                    passed[line] = None
                line = lines.readers
                if writes and line is not None and line.live:
                    passed[line] = None
        limit = 2 * self.slots.capacity
        passer = waiter.key[-1]
        for line in passed:
            for older in line.older(waiter):
                if older.last_passer == passer:
                    continue
                older.last_passer = passer
                if self.zombies and self._zombie_blocks(older):
                    continue
                # Patterns stand in the line of their prefix folder without meeting all of it.
                if (waiter.patterned or older.patterned) and not waiters_conflict(waiter, older):
                    continue
                older.overtaken += 1
                if older.overtaken >= limit and older not in self.closers:
                    self.closers[older] = None
                    self._close_lines(older)
        self._pass_meter(self.slots, waiter)
        for meter, _ in waiter.profile.amounts:
            self._pass_meter(meter, waiter)

    def _close_lines(self, waiter: Waiter) -> None:
        waiter.closes = True
        for line in waiter.lines:
            line.close(waiter)
        self._urge(waiter)

    def _open_lines(self, waiter: Waiter) -> None:
        """A waiter holds nobody back any more: those it did may have a chance."""
        if not waiter.closes:
            return
        waiter.closes = False
        for line in waiter.lines:
            line.reopen(waiter)
        for line in waiter.lines:
            for shelf in list((line.place.point.shelves or {}).values()):
                self._unpark(shelf)
                self._list_shelf(shelf)

    def _review_closers(self) -> None:
        """Zombies came or went: whoever is blocked by one holds nobody back."""
        for waiter in list(self.closers):
            if self._zombie_blocks(waiter):
                self._open_lines(waiter)
            elif not waiter.closes:
                self._close_lines(waiter)

    def _zombie_blocks(self, waiter: Waiter) -> bool:
        return any(grant_blocks(grant, waiter) for grant in self.zombies)

    def _pass_meter(self, meter: Meter, waiter: Waiter) -> None:
        """Count a start against one who waits for capacity only, one such waiter at a time.

        Counting it for all who lack only capacity would mean to look at all. They take turns, so
        that each is reached, and each stays until it has been overtaken often enough to go first.
        """
        if meter.zombies:
            return
        for _ in range(_LOOKS):
            passed = meter.counted
            if passed is not None and passed.alive and self._lacks_only(passed, meter):
                break
            meter.counted = self._next_in_turn(meter)
        else:
            return
        # It may be passed for several amounts at once, which counts once.
        if passed.turn < waiter.turn and passed.last_taker != waiter.key[-1]:
            passed.last_taker = waiter.key[-1]
            passed.overtaken_for_capacity += 1
            if passed.overtaken_for_capacity >= 2 * self.slots.capacity:
                self._reserve(passed)

    def _lacks_only(self, waiter: Waiter, meter: Meter) -> bool:
        """Whether a waiter lacks nothing but capacity; of slots, nothing but a slot."""
        if meter is self.slots and waiter.profile.short(waiter) is not None:
            return False
        return self.table.blocker(waiter) is None

    def _next_in_turn(self, meter: Meter) -> Waiter | None:
        """The next of those who wait for a meter, oldest first, and round again."""
        for waiter in meter.turns:
            if waiter.alive:
                return waiter
        meter.turns = iter(tuple(meter.line.items))
        return next((waiter for waiter in meter.turns if waiter.alive), None)

    def _reserve(self, waiter: Waiter) -> None:
        """Go first; and let nobody else take what it lacks, unless that is kept for another."""
        amounts = waiter.profile.amounts
        if amounts and all(meter.reserved is None for meter, _ in amounts):
            self.reserved[waiter] = None
            for meter, _ in amounts:
                meter.reserved = waiter
            # Before all others of its profile, who would set that aside as lacking capacity.
            self._rekey(waiter, (RESERVED, 0.0, 0.0, waiter.key[-1]))
        self._urge(waiter)

    def _review_reserved(self) -> None:
        """Who has come to lack more than capacity holds nobody back."""
        for waiter in list(self.reserved):
            if self.table.blocker(waiter) is not None:
                self._unreserve(waiter)

    def _urge(self, waiter: Waiter) -> None:
        """Whoever nobody may pass goes first itself."""
        if waiter.key[0] > URGENT:
            self._rekey(waiter, (URGENT, 0.0, 0.0, waiter.key[-1]))

    def _unreserve(self, waiter: Waiter) -> None:
        """A waiter that meters were reserved for has started, left, or lacks more than capacity."""
        del self.reserved[waiter]
        if waiter.alive:
            self._rekey(waiter, (URGENT, 0.0, 0.0, waiter.key[-1]))
        for meter, _ in waiter.profile.amounts:
            if meter.reserved is waiter:
                meter.reserved = None
                self.reopen(meter)


def _drop_if_empty(shelf: Shelf) -> None:
    point = shelf.point
    if point is not None and not (shelf.readers or shelf.writers or shelf.parked):
        assert point.shelves is not None
        del point.shelves[shelf.profile]

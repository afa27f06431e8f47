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
from heapq import heappop, heappush, heapreplace

from interlock.kernel.lending import give_back_amounts, take_amount
from interlock.kernel.lines import Line
from interlock.kernel.meters import Meter
from interlock.kernel.places import Place
from interlock.kernel.shelves import Point, Shelf
from interlock.kernel.table import Table, conflicts_at, grant_blocks
from interlock.kernel.waiters import (
    Amounts,
    Grant,
    Item,
    Needs,
    Profile,
    ProxyWaiter,
    Rank,
    Traits,
    Waiter,
)

REQUEST_RANK: Rank = (float("-inf"), 0.0, 0.0)
"""Before every priority: waits in mid-flight."""
RESERVED_RANK: Rank = (-1e301, 0.0, 0.0)
"""Next: amounts are kept for it."""
DUE_RANK: Rank = (-1e300, 0.0, 0.0)
"""Before every priority: overtaken too often."""

_LOOKS = 3
"""At how many waiters a start looks to find one that lacks only capacity."""

_ReadyHeap = list[tuple[Item, int, Profile]]


class Admission:
    """The queue in front of the claim table."""

    def __init__(
        self, table: Table, strict_priority: bool, zombies_hold_slots: bool = True
    ) -> None:
        self.table = table
        self._strict_priority = strict_priority
        """Priority is a promise: to start before those with less of it overtakes nobody."""
        self._zombies_hold_slots = zombies_hold_slots
        self.slots = table.slots
        self.turn = 0
        self.paused = False
        """Nothing starts; waits in mid-flight are still served."""
        self.draining = False
        """Nothing new starts, but for what something that runs may be waiting for."""
        self.plain = Profile(Traits())
        """The profile of most: no amounts, no kin, no patterns."""
        self.profiles: dict[Traits, Profile] = {Traits(): self.plain}
        self.grants = table.grants
        self.zombies: dict[Grant, None] = {}
        self.rationed: dict[Meter, None] = {}
        """Meters that give out only so much more: whoever waits for them holds nobody back."""
        self.due_waiters: dict[Waiter, None] = {}
        """Waiters that nobody younger may pass, unless a zombie blocks them."""
        self.reserved: dict[Waiter, None] = {}
        """Waiters that lack only capacity, and after which nobody may take any."""
        self._ready: _ReadyHeap = []
        """A heap of the profiles that have a shelf listed and are not known to lack capacity."""
        self._ready_with_slot: _ReadyHeap = []
        """The same for those who need no slot."""
        self._serial = 0
        self._waiting_to_resume: dict[Profile, None] = {}
        """Profiles that a pause or a drain keeps from starting."""

    def resume(self) -> None:
        """A pause is over: look again at those it held back. `admit` follows."""
        self.paused = False
        profiles, self._waiting_to_resume = self._waiting_to_resume, {}
        self._relist(profiles)

    def profile(self, traits: Traits) -> Profile:
        """The profile of those who have these traits in common."""
        found = self.profiles.get(traits)
        if found is None:
            found = self.profiles[traits] = Profile(traits)
        return found

    def forget_profile(self, profile: Profile) -> None:
        """Drop a profile with which nobody waits any more."""
        if not profile.count and profile is not self.plain:
            if self.profiles.get(profile.traits) is profile:
                del self.profiles[profile.traits]
            self._waiting_to_resume.pop(profile, None)
            if profile.lacks is not None:
                profile.lacks.watchers.pop(profile, None)

    # -- waiting ------------------------------------------------------------------------

    def enqueue(self, waiter: Waiter, rank: Rank, arrival: int) -> None:
        """Let a waiter wait; `choose` follows."""
        waiter.item = (rank, arrival, waiter)
        profile = waiter.profile
        if profile is not self.plain:
            # The one it was given may have been dropped while it did not wait.
            waiter.profile = profile = self.profile(profile.traits)
        profile.count += 1
        if not profile.is_request:
            for place, writes in waiter.needs:
                for point in place.lines_at:
                    line = point.writing if writes else point.reading
                    (line or point.line(writes)).join(waiter)
            self.slots.line.join(waiter)
            for meter, _ in profile.amounts:
                meter.line.join(waiter)
        self._place(waiter)

    def make_exempt(self, waiter: Waiter) -> None:
        """Something that runs waits for this one: it passes reservations from now on.

        What the due one waits for may be that very attempt, so to hold this one back could be a
        deadlock. It keeps its age.
        """
        old = waiter.profile
        if old.exempt:
            return
        assert waiter.item is not None
        old.count -= 1
        self.forget_profile(old)
        waiter.profile = self.profile(old.traits._replace(is_awaited=True))
        waiter.profile.count += 1
        waiter.item = (*waiter.item[:2], waiter)
        self._place(waiter)

    def prioritize(self, waiter: Waiter, priority: int) -> None:
        """Give a waiter another priority; whoever nobody may pass stays first all the same."""
        assert waiter.item is not None
        rank = waiter.item[0]
        if rank > DUE_RANK:
            self._rekey(waiter, (-priority, *rank[1:]))

    def _rekey(self, waiter: Waiter, rank: Rank) -> None:
        waiter.item = item = (rank, waiter.arrival, waiter)
        shelf = waiter.shelf
        assert shelf is not None
        heappush(shelf.heap(waiter.writes_there), item)
        self._list_shelf(shelf)

    def _place(self, waiter: Waiter) -> None:
        """Put a waiter on the shelf of what blocks it, or with those whom nothing blocks."""
        blocked = self.table.blocker(waiter)
        if blocked is not None:
            self._shelve(waiter, *blocked)
            return
        waiter.shelf = shelf = waiter.profile.free
        waiter.writes_there = True
        assert waiter.item is not None
        heappush(shelf.writers, waiter.item)
        self._list_shelf(shelf)

    def _shelve(self, waiter: Waiter, point: Point, writes: bool, parked: bool) -> None:
        profile, item = waiter.profile, waiter.item
        assert item is not None
        if point.shelves is None:
            point.shelves = {}
        shelf = point.shelves.get(profile)
        if shelf is None:
            shelf = point.shelves[profile] = Shelf(profile, point)
        waiter.shelf = shelf
        waiter.writes_there = writes
        if parked:
            shelf.parked.append(item)
        else:
            heappush(shelf.writers if writes else shelf.readers, item)

    def withdraw(self, waiter: Waiter) -> None:
        """A waiter gives up, or gets what it waits for. If it gives up, `choose` follows."""
        waiter.item = None
        profile = waiter.profile
        profile.count -= 1
        if not profile.count:
            self.forget_profile(profile)
        if self.reserved and waiter in self.reserved:
            self._unreserve(waiter)
        if profile.is_request:
            return
        for place, writes in waiter.needs:
            for point in place.lines_at:
                line = point.writing if writes else point.reading
                (line or point.line(writes)).leave(waiter)
        self.slots.line.leave(waiter)
        for meter, _ in profile.amounts:
            meter.line.leave(waiter)
        if self.due_waiters and waiter in self.due_waiters:
            del self.due_waiters[waiter]
            self._suspend_due(waiter)

    # -- listing ------------------------------------------------------------------------

    def _list_shelf(self, shelf: Shelf) -> None:
        """Somebody on a shelf might be able to start now."""
        best = shelf.best()
        if best is None:
            return
        listed = shelf.listed
        if listed is None or best < listed[0]:
            self._serial += 1
            shelf.listed = listed = (best, self._serial, shelf)
            profile = shelf.profile
            heappush(profile.shelves, listed)
            if profile.listed is None or best < profile.listed[0]:
                self._list_profile(profile, best)

    def _list_profile(self, profile: Profile, best: Item) -> None:
        self._serial += 1
        profile.listed = (best, self._serial, profile)
        heappush(self._ready_with_slot if profile.has_slot else self._ready, profile.listed)

    def _best(self, profile: Profile) -> Item | None:
        """The first waiter of a profile that might be able to start."""
        shelves = profile.shelves
        while shelves:
            listed = shelves[0]
            shelf = listed[2]
            if listed is not shelf.listed:
                heappop(shelves)
                continue
            best = shelf.best()
            if best is listed[0]:
                return best
            if best is None:
                heappop(shelves)
                shelf.listed = None
                _drop_if_empty(shelf)
                continue
            self._serial += 1
            shelf.listed = listed = (best, self._serial, shelf)
            heapreplace(shelves, listed)
            if shelves[0] is listed:
                return best
        return None

    def _released(self, point: Point) -> None:
        """Less is held at a point: those who watch it may have a chance."""
        for shelf in (point.shelves or {}).values():
            self._list_shelf(shelf)

    def _unpark(self, shelf: Shelf) -> None:
        parked, shelf.parked = shelf.parked, []
        for item in parked:
            if item[2].item is item:
                heappush(shelf.heap(item[2].writes_there), item)

    # -- starting -----------------------------------------------------------------------

    def choose(self) -> Waiter | None:
        """Who gets what it waits for now, the best first; None when nobody can.

        It does not wait any more. `take` follows, and then the question who is next.
        """
        if self.reserved:
            self._review_reserved()
        if self._ready_with_slot:
            found = self._choose_from(self._ready_with_slot)
            if found is not None:
                return found
        slots = self.slots
        if self._ready and slots.used < slots.capacity:
            return self._choose_from(self._ready)
        return None

    def _choose_from(self, heap: _ReadyHeap) -> Waiter | None:
        while heap:
            listed = heap[0]
            profile = listed[2]
            if listed is not profile.listed:
                heappop(heap)
                continue
            best = self._best(profile)
            if best is None:
                heappop(heap)
                profile.listed = None
                continue
            if best is not listed[0]:
                self._serial += 1
                profile.listed = listed = (best, self._serial, profile)
                heapreplace(heap, listed)
                if heap[0] is not listed:
                    continue
            waiter = best[2]
            if (profile.amounts or self.paused or self.draining) and self._set_aside(waiter):
                heappop(heap)
                profile.listed = None
                continue
            shelf, writes = waiter.shelf, waiter.writes_there
            assert shelf is not None
            heappop(shelf.writers if writes else shelf.readers)
            blocked = self.table.blocker(waiter)
            if blocked is None:
                if not profile.exempt:
                    self._overtake(waiter)
                self.withdraw(waiter)
                return waiter
            if waiter in self.reserved:
                self._unreserve(waiter)
                # It was put back with a new item; it is to have one that is nowhere.
                waiter.item = (DUE_RANK, waiter.arrival, waiter)
            if blocked[0] is shelf.point and blocked[1] is writes:
                shelf.parked.append(waiter.item or best)
            else:
                self._shelve(waiter, *blocked)
        return None

    def _set_aside(self, waiter: Waiter) -> bool:
        """Whether a whole profile has to wait: for capacity, or for the end of a pause."""
        profile = waiter.profile
        if not profile.is_request and (self.paused or (self.draining and not profile.exempt)):
            self._waiting_to_resume[profile] = None
            return True
        meter = profile.short(waiter) if profile.amounts else None
        if meter is None:
            return False
        meter.watchers[profile] = None
        profile.lacks = meter
        return True

    def take(self, grant: Grant, waiter: Waiter, now: float) -> None:
        """Hold what the waiter needs, with a slot if it has none."""
        self.grants[grant] = None
        profile, needs = waiter.profile, waiter.needs
        if not profile.has_slot:
            self.slots.used += 1
            grant.holds_slot = True
        self.table.mark(needs, 1)
        grant.places += needs
        for meter, amount in profile.amounts:
            take_amount(grant, meter, amount, waiter, now)

    # -- releasing ----------------------------------------------------------------------

    def release(self, grant: Grant) -> None:
        """The holder is gone: give everything back. `admit` follows."""
        del self.grants[grant]
        grant.released = True
        places, grant.places = grant.places, ()
        self.table.mark(places, -1)
        if grant.amounts:
            give_back_amounts(grant, self.grants)
            for meter in grant.amounts:
                self.reopen(meter)
        if grant.holds_slot:
            self.lend_slot(grant)
        for place, _ in places:
            for point in place.marks:
                if point.shelves:
                    self._released(point)
            if place.exact is not None and place.exact.shelves:
                self._released(place.exact)
        if grant.zombie:
            del self.zombies[grant]
            for meter in grant.amounts:
                meter.zombies -= 1
            self._review_due()

    def occupy(self, grant: Grant, needs: Needs, amounts: Amounts) -> None:
        """Something outside holds this, whoever else does: to others it is a zombie."""
        self.take(
            grant,
            ProxyWaiter(grant, needs, Profile(Traits(amounts, has_slot=True)), self.turn),
            grant.since,
        )
        self.make_zombie(grant)

    def lend_slot(self, grant: Grant) -> None:
        """The holder waits in mid-flight, or is a zombie: its slot is free for others."""
        grant.holds_slot = False
        self.slots.used -= 1

    def reopen(self, meter: Meter) -> None:
        """There is more of a meter: look again at those who lacked it."""
        if meter.watchers:
            watchers, meter.watchers = meter.watchers, {}
            self._relist(watchers)

    def throttle(self, meter: Meter) -> None:
        """A meter gives out less than there is, or all of it again. `choose` follows."""
        if meter.ration is not None:
            self.rationed[meter] = None
        else:
            self.rationed.pop(meter, None)
        self._review_due()
        self.reopen(meter)

    def _relist(self, profiles: Iterable[Profile]) -> None:
        for profile in profiles:
            profile.lacks = None
            best = self._best(profile)
            if best is not None and profile.listed is None:
                self._list_profile(profile, best)

    def make_zombie(self, grant: Grant) -> None:
        """The holder was told to stop. Whoever it blocks holds nobody back meanwhile."""
        if not grant.zombie:
            grant.zombie = True
            self.zombies[grant] = None
            if grant.holds_slot and not self._zombies_hold_slots:
                self.lend_slot(grant)
            for meter in grant.amounts:
                meter.zombies += 1
                if meter.reserved is not None:
                    self.reopen(meter)
            self._review_due()

    # -- bounded overtaking ---------------------------------------------------------------

    def _overtake(self, waiter: Waiter) -> None:
        """Count those whom this start goes past."""
        turn = waiter.turn
        for place, writes in waiter.needs:
            for point in place.overtakes_at:
                line = point.writing
                if line is not None and line.live and line.items[line.start].turn < turn:
                    self._overtake_in(line, point, waiter, place, writes)
                line = point.reading if writes else None
                if line is not None and line.live and line.items[line.start].turn < turn:
                    self._overtake_in(line, point, waiter, place, writes)
        self._overtake_at_meter(self.slots, waiter)
        for meter, _ in waiter.profile.amounts:
            self._overtake_at_meter(meter, waiter)

    def _overtake_in(
        self, line: Line, point: Point, waiter: Waiter, place: Place, writes: bool
    ) -> None:
        limit = 2 * self.slots.capacity
        overtaker = waiter.arrival
        for older in line.older(waiter):
            if older.overtaken.last_overtaker == overtaker or self._outranks(waiter, older):
                continue
            # Patterns stand in the line of their prefix folder without meeting all of it.
            patterned = waiter.profile.patterned or older.profile.patterned
            if patterned and not conflicts_at(point, older, place, writes):
                continue
            overtaken = older.own_overtaken()
            overtaken.last_overtaker = overtaker
            if (self.zombies or self.rationed) and self._is_held_up(older):
                continue
            overtaken.times += 1
            if overtaken.times >= limit and older not in self.due_waiters:
                self.due_waiters[older] = None
                self._make_due(older)

    def _outranks(self, waiter: Waiter, older: Waiter) -> bool:
        if not self._strict_priority:
            return False
        assert waiter.item is not None
        assert older.item is not None
        return waiter.item[0][0] < older.item[0][0]

    def _make_due(self, waiter: Waiter) -> None:
        waiter.own_overtaken().is_due = True
        self.table.due_count += 1
        for point, writes in _lines_of(waiter):
            point.add_due(waiter, writes)
        self._rank_as_due(waiter)

    def _suspend_due(self, waiter: Waiter) -> None:
        """A waiter holds nobody back any more: those it did may have a chance."""
        if not waiter.overtaken.is_due:
            return
        waiter.overtaken.is_due = False
        self.table.due_count -= 1
        for point, writes in _lines_of(waiter):
            point.remove_due(waiter, writes)
        for point, _ in _lines_of(waiter):
            parked = (point.parks_at or point).shelves or {}
            for shelf in list(parked.values()):
                self._unpark(shelf)
                self._list_shelf(shelf)

    def _review_due(self) -> None:
        """Zombies or rations came or went: whoever waits for one holds nobody back."""
        for waiter in list(self.due_waiters):
            if self._is_held_up(waiter):
                self._suspend_due(waiter)
            elif not waiter.overtaken.is_due:
                self._make_due(waiter)

    def _is_held_up(self, waiter: Waiter) -> bool:
        """Whether it waits for something of which nobody knows when it comes."""
        if self.rationed and any(meter in self.rationed for meter, _ in waiter.profile.amounts):
            return True
        return self._zombie_blocks(waiter)

    def _zombie_blocks(self, waiter: Waiter) -> bool:
        return any(grant_blocks(grant, waiter) for grant in self.zombies)

    def _overtake_at_meter(self, meter: Meter, waiter: Waiter) -> None:
        """Count a start against one who waits for capacity only, one such waiter at a time.

        Counting it for all who lack only capacity would mean to look at all. They take turns, so
        that each is reached, and each stays until it has been overtaken often enough to go first.
        """
        if meter.zombies or meter.line.live < 2:
            return
        for _ in range(_LOOKS):
            counted = meter.counted
            if (
                counted is not None
                and counted.item is not None
                and self._lacks_only_capacity(counted, meter)
            ):
                break
            meter.counted = self._next_in_turn(meter)
        else:
            return
        # It may be passed for several amounts at once, which counts once.
        if counted.turn >= waiter.turn or self._outranks(waiter, counted):
            return
        if counted.overtaken.last_taker != waiter.arrival:
            overtaken = counted.own_overtaken()
            overtaken.last_taker = waiter.arrival
            overtaken.for_capacity += 1
            if overtaken.for_capacity >= 2 * self.slots.capacity:
                self._reserve(counted)

    def _lacks_only_capacity(self, waiter: Waiter, meter: Meter) -> bool:
        """Whether a waiter lacks nothing but capacity; of slots, nothing but a slot."""
        shelf = waiter.shelf
        if shelf is not None and shelf.point is not None and shelf.point.writers:
            return False  # It was seen to be blocked there, and still is.
        if meter is self.slots and waiter.profile.short(waiter) is not None:
            return False
        if self.rationed and self._is_held_up(waiter):
            return False
        return self.table.blocker(waiter) is None

    def _next_in_turn(self, meter: Meter) -> Waiter | None:
        """The next of those who wait for a meter, oldest first, and round again."""
        for waiter in meter.turns:
            if waiter.item is not None:
                return waiter
        meter.turns = iter(meter.line.items[meter.line.start :])
        return next((waiter for waiter in meter.turns if waiter.item is not None), None)

    def _reserve(self, waiter: Waiter) -> None:
        """Go first; and let nobody else take what it lacks, unless that is kept for another."""
        amounts = waiter.profile.amounts
        if amounts and all(meter.reserved is None for meter, _ in amounts):
            self.reserved[waiter] = None
            for meter, _ in amounts:
                meter.reserved = waiter
            # Before all others of its profile, who would set that aside as lacking capacity.
            self._rekey(waiter, RESERVED_RANK)
        self._rank_as_due(waiter)

    def _review_reserved(self) -> None:
        """Who has come to lack more than capacity holds nobody back."""
        for waiter in list(self.reserved):
            rationed = self.rationed and self._is_held_up(waiter)
            if rationed or self.table.blocker(waiter) is not None:
                self._unreserve(waiter)

    def _rank_as_due(self, waiter: Waiter) -> None:
        """Whoever nobody may pass goes first itself."""
        if waiter.item is not None and waiter.item[0] > DUE_RANK:
            self._rekey(waiter, DUE_RANK)

    def _unreserve(self, waiter: Waiter) -> None:
        """A waiter that meters were reserved for has started, left, or lacks more than capacity."""
        del self.reserved[waiter]
        if waiter.item is not None:
            self._rekey(waiter, DUE_RANK)
        for meter, _ in waiter.profile.amounts:
            if meter.reserved is waiter:
                meter.reserved = None
                self.reopen(meter)


def _lines_of(waiter: Waiter) -> Iterator[tuple[Point, bool]]:
    """Where a waiter stands in line, and whether among the writers."""
    for place, writes in waiter.needs:
        for point in place.lines_at:
            yield point, writes


def _drop_if_empty(shelf: Shelf) -> None:
    point = shelf.point
    if point is not None and not (shelf.readers or shelf.writers or shelf.parked):
        assert point.shelves is not None
        del point.shelves[shelf.profile]

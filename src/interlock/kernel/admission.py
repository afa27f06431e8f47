"""Admission: which waiter starts next.

A waiter is granted all it needs (places, amounts, a slot) at once, or nothing. `choose` picks the
best waiter that can have everything now; `take` and `release` keep the claim table in step.

How it works
------------
Each waiter is on exactly one *shelf*: that of one point that blocks it, or, if nothing blocks it,
the free shelf of its *profile* (the waiters that need the same amounts). A release only *lists* the
shelves of its points under their best waiter; it looks at no waiter. While there is a slot,
`choose` looks at the best waiter of the best listed shelf. That waiter starts, or it moves to the
shelf of what blocks it now.

Why it is right
---------------
Invariants, between any two calls from outside:

I1. A waiter that waits has one live item, `waiter.item`, in one heap or parked list of
    `waiter.shelf`. Older items of it may lie around; `item[2].item is item` tells which is live.
I2. A waiter that could start now is in a heap of its shelf (not parked), its shelf is listed in its
    profile, and its profile is in a ready heap.
I3. Shelves and profiles are listed under an item that is not worse than their best waiter. An entry
    may be too good (its waiter has left), never too bad; `_best` corrects it when it comes up.

*The best waiter that can start is found.* By I3, what is on top of the heaps is a bound on all that
is below. `_choose_from` corrects the top until it is a live waiter, and then checks it in full
against the table. The first one that passes is therefore the best of all that could start; by I2,
when the heaps are empty no waiter could.

*No waiter is lost.* I2 can break for a waiter in four ways only, and each is undone by the one
event that removes the obstacle:

| it was taken out of the lists because | it is back in them when |
|---|---|
| a point's count excludes it (`_shelve`) | the count falls: `release` -> `_released` |
| a due waiter is ahead of it (parked) | that one is due no longer: `_suspend_due` -> `_unpark` |
| its whole profile lacks a meter (`_set_aside`) | the meter has more: `reopen` -> `_relist` |
| the run is paused or drains (`_set_aside`) | `resume` -> `_relist` |

A lack of slots takes nothing out of the lists: `choose` just does not look. A drain never ends.
Watching one obstacle is enough, however many there are: until that one is gone the waiter cannot
start, and when it goes the waiter is looked at again and finds the next one.

*No deadlock.* A waiting task holds nothing, so no cycle of waits can pass through it. Only requests
in mid-flight hold while they wait; `deadlock` denies those that could never end.

*No starvation.* See `overtaking`.

After every `handle()` of the simulation and of the kernel's tests, an oracle checks by brute force
that no waiting task could have started (`tests/simulation`).

Costs
-----
`n` is the number of waiters, `p` the points of a waiter's claims: for literal paths and names about
two for each claimed folder above them.

| operation | cost |
|---|---|
| enqueue | p looks, p joined lines, one heap push (log n) |
| choose, per start | a few looks (3.4 per task in benchmark P2), each p; heap pushes (log n) |
| release | p, and one heap push per profile that waits at a released point; never per waiter |
| withdraw (a cancelled waiter) | p; its items are dropped when they come up |
| prioritize | one heap push |
| pause, resume, a meter with more of it | one heap push per profile concerned |

Known limits
------------
- Profiles are kept apart by exact amounts and by kin. A thousand different memory sizes, or a
  thousand parents with children, are a thousand profiles, and a release lists that many shelves.
- A waiter with a pattern looks at everything that is held near its prefix (see `places`).
- While amounts are reserved, each `choose` looks again at every waiter with a reservation.
- With a million waiters a task costs about 1.4 times as much as with ten thousand: Python's garbage
  collector walks the queue. The number of looks does not grow (docs/benchmarks.md, P2).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace

from interlock.kernel.lending import give_back_amounts, take_amount
from interlock.kernel.meters import Meter
from interlock.kernel.overtaking import DUE_RANK, Overtaking
from interlock.kernel.shelves import Point, Shelf
from interlock.kernel.table import Table
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
"""Before everything: a request in mid-flight holds claims while it waits, so serve it first."""

_ReadyHeap = list[tuple[Item, int, Profile]]


class Admission(Overtaking):
    """The queue in front of the claim table."""

    def __init__(
        self, table: Table, strict_priority: bool, zombies_hold_slots: bool = True
    ) -> None:
        super().__init__(table, strict_priority)
        self._zombies_hold_slots = zombies_hold_slots
        self.turn = 0
        """Counts calls of `handle`: waiters of one turn are equally old."""
        self.paused = False
        """Nothing starts; requests in mid-flight are still served."""
        self.draining = False
        """Nothing new starts, except what a running attempt may be waiting for."""
        self.plain = Profile(Traits())
        """The profile of most waiters: no amounts, no kin, no patterns."""
        self.profiles: dict[Traits, Profile] = {Traits(): self.plain}
        self.grants = table.grants
        self._ready: _ReadyHeap = []
        """Profiles that have a shelf listed and are not known to lack an amount."""
        self._ready_with_slot: _ReadyHeap = []
        """The same for profiles that need no slot."""
        self._serial = 0
        """Breaks ties between heap entries, which are never compared further."""
        self._waiting_to_resume: dict[Profile, None] = {}
        """Profiles that a pause or a drain keeps from starting."""

    def resume(self) -> None:
        """End a pause: look again at the profiles it held back. `choose` follows."""
        self.paused = False
        profiles, self._waiting_to_resume = self._waiting_to_resume, {}
        self._relist(profiles)

    def profile(self, traits: Traits) -> Profile:
        """Return the profile of the waiters that have these traits in common."""
        found = self.profiles.get(traits)
        if found is None:
            found = self.profiles[traits] = Profile(traits)
        return found

    def forget_profile(self, profile: Profile) -> None:
        """Drop a profile that no waiter has any more."""
        if not profile.count and profile is not self.plain:
            if self.profiles.get(profile.traits) is profile:
                del self.profiles[profile.traits]
            self._waiting_to_resume.pop(profile, None)
            if profile.lacks is not None:
                profile.lacks.watchers.pop(profile, None)

    # -- waiting ------------------------------------------------------------------------

    def enqueue(self, waiter: Waiter, rank: Rank, arrival: int) -> None:
        """Let a waiter wait. `choose` follows."""
        waiter.item = (rank, arrival, waiter)
        profile = waiter.profile
        if profile is not self.plain:
            # The profile it was made with may have been dropped while it did not wait.
            waiter.profile = profile = self.profile(profile.traits)
        profile.count += 1
        if not profile.is_request:
            # Requests go before everything, so they cannot be overtaken and stand in no line.
            for place, writes in waiter.needs:
                for point in place.lines_at:
                    line = point.writing if writes else point.reading
                    (line or point.line(writes)).join(waiter)
            self.slots.line.join(waiter)
            for meter, _ in profile.amounts:
                meter.line.join(waiter)
        self._place(waiter)

    def make_exempt(self, waiter: Waiter) -> None:
        """Let a waiter pass reservations from now on: a running attempt waits for it.

        A due waiter may be waiting for that very attempt, so holding this one back could be a
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
        # A new item, because the old one is in the heap of a shelf of the old profile.
        waiter.item = (*waiter.item[:2], waiter)
        self._place(waiter)

    def prioritize(self, waiter: Waiter, priority: int) -> None:
        """Give a waiter another priority. A due waiter keeps its rank."""
        assert waiter.item is not None
        rank = waiter.item[0]
        if rank > DUE_RANK:
            self._rekey(waiter, (-priority, *rank[1:]))

    def _rekey(self, waiter: Waiter, rank: Rank) -> None:
        # The item with the old rank is dead from here on, and is dropped when it comes up.
        waiter.item = item = (rank, waiter.arrival, waiter)
        shelf = waiter.shelf
        assert shelf is not None
        heappush(shelf.heap(waiter.writes_there), item)
        self._list_shelf(shelf)

    def _place(self, waiter: Waiter) -> None:
        """Put a waiter on the shelf of what blocks it, or on the free shelf of its profile."""
        blocked = self.table.blocker(waiter)
        if blocked is not None:
            self._shelve(waiter, *blocked)
            return
        waiter.shelf = shelf = waiter.profile.free
        waiter.writes_there = True  # The free shelf uses only one of its two heaps.
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
            # Not into a heap: the point's count does not exclude it, so it would come up at once.
            shelf.parked.append(item)
        else:
            heappush(shelf.writers if writes else shelf.readers, item)

    def withdraw(self, waiter: Waiter) -> None:
        """End a wait: the waiter gives up or has been chosen. If it gives up, `choose` follows."""
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
        """Some waiter of this shelf might be able to start now: list it."""
        best = shelf.best()
        if best is None:
            return
        listed = shelf.listed
        # Listed under something better already: that entry comes up first and is corrected then.
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
        """Return the best waiter of a profile that might be able to start; correct its heap."""
        shelves = profile.shelves
        while shelves:
            listed = shelves[0]
            shelf = listed[2]
            if listed is not shelf.listed:
                heappop(shelves)  # The shelf was listed again under a better waiter.
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
        """Less is held at a point: list the shelves that watch it."""
        for shelf in (point.shelves or {}).values():
            self._list_shelf(shelf)

    def _unpark(self, shelf: Shelf) -> None:
        """Put parked waiters back into their heaps: what held them back may be gone."""
        parked, shelf.parked = shelf.parked, []
        for item in parked:
            if item[2].item is item:
                heappush(shelf.heap(item[2].writes_there), item)

    # -- starting -----------------------------------------------------------------------

    def choose(self) -> Waiter | None:
        """Return the best waiter that can have all it needs now; None when no waiter can.

        It no longer waits. `take` follows, then the next `choose`.
        """
        if self.reserved:
            self._review_reserved()
        if self._ready_with_slot:
            found = self._choose_from(self._ready_with_slot)
            if found is not None:
                return found
        # Without a slot nothing is looked at, so a full machine costs nothing per waiter.
        slots = self.slots
        if self._ready and slots.used < slots.capacity:
            return self._choose_from(self._ready)
        return None

    def _choose_from(self, heap: _ReadyHeap) -> Waiter | None:
        while heap:
            listed = heap[0]
            profile = listed[2]
            if listed is not profile.listed:
                heappop(heap)  # The profile was listed again under a better waiter.
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
                    continue  # Another profile has a better waiter now.
            waiter = best[2]
            if (profile.amounts or self.paused or self.draining) and self._set_aside(waiter):
                heappop(heap)
                profile.listed = None
                continue
            shelf, writes = waiter.shelf, waiter.writes_there
            assert shelf is not None
            # It leaves its shelf whatever happens: it starts, or it watches something else.
            heappop(shelf.writers if writes else shelf.readers)
            blocked = self.table.blocker(waiter)
            if blocked is None:
                if not profile.exempt:
                    self._overtake(waiter)
                self.withdraw(waiter)
                return waiter
            if waiter in self.reserved:
                self._unreserve(waiter)
                # That put it back on its shelf with a new item. Replace it by one that is in no
                # heap yet, as `_shelve` below expects.
                waiter.item = (DUE_RANK, waiter.arrival, waiter)
            # The same point again: its count does not exclude this waiter (`Shelf.best` checked
            # that), so a due waiter does. Park it, or it would come up again at once.
            if blocked[0] is shelf.point and blocked[1] is writes:
                shelf.parked.append(waiter.item or best)
            else:
                self._shelve(waiter, *blocked)
        return None

    def _set_aside(self, waiter: Waiter) -> bool:
        """Whether the whole profile of a waiter has to wait: for an amount, or the end of a pause.

        All its waiters need the same amounts, so what this one lacks all of them lack.
        """
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
        """Let a grant hold what a waiter needs, with a slot if it has none."""
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
        """The holder has exited: give back everything it holds. `choose` follows."""
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
        """Record that something outside the run holds this, whatever else is held.

        To others it is a zombie: it cannot be told when that ends.
        """
        self.take(
            grant,
            ProxyWaiter(grant, needs, Profile(Traits(amounts, has_slot=True)), self.turn),
            grant.since,
        )
        self.make_zombie(grant)

    def lend_slot(self, grant: Grant) -> None:
        """Free the slot of a holder that waits in mid-flight, exits, or is a zombie."""
        grant.holds_slot = False
        self.slots.used -= 1

    def reopen(self, meter: Meter) -> None:
        """There is more of a meter: look again at the profiles that lacked it."""
        if meter.watchers:
            watchers, meter.watchers = meter.watchers, {}
            self._relist(watchers)

    def throttle(self, meter: Meter) -> None:
        """Take in that a meter gives out less than there is, or all again. `choose` follows."""
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
        """Take in that a holder was told to stop. Waiters it blocks hold nothing back meanwhile."""
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


def _drop_if_empty(shelf: Shelf) -> None:
    point = shelf.point
    if point is not None and not (shelf.readers or shelf.writers or shelf.parked):
        assert point.shelves is not None
        del point.shelves[shelf.profile]

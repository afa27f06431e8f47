"""Bounded overtaking: no waiter is passed for ever.

A start *overtakes* a waiter that it conflicts with and that became ready in an earlier turn. A
waiter that has been overtaken `2 x slots` times is *due*: it gets the rank before all priorities,
and no younger waiter that conflicts with it may start first.

Why no waiter starves
---------------------
1. While a waiter is not due, every start that overtakes it is counted, so after `2 x slots` of
   them it is due. Starts that do not conflict with it cannot delay it.
2. Once it is due, `Table.blocker` blocks every younger waiter that conflicts with it. So the
   holders that block it only become fewer, and each of them exits: agents end, or time out.
3. When the last of them has exited it is listed with the rank before all others, and starts.
4. Of two due waiters that conflict, only the younger one is blocked by the other. The oldest due
   waiter is therefore never blocked by a due one, and the due waiters cannot block each other
   in a circle.

Exceptions, each with its reason
--------------------------------
- *A waiter that will end in time* may pass until the due one has been overtaken `4 x slots` times:
  its estimate ends before everything that blocks the due one is expected to be gone, so it delays
  nothing. Estimates are guesses, hence the second bound.
- *Requests, children and awaited tasks* always pass. What the due waiter waits for may be the very
  attempt that waits for them; to hold them back would be a deadlock.
- *A waiter that a zombie blocks, or that needs a rationed meter,* is neither counted nor due
  meanwhile. It is unknown when that obstacle goes, and the queue must not stand still until then.
- *Ties do not count*: waiters of one turn are equally old, so that a batch is free to be reordered.
- *With first come, first served* a higher priority overtakes nothing: priority is a promise there.

Capacity
--------
A waiter that lacks only an amount (a slot, some memory) has no place at which it could meet the
starts that pass it. Counting each start for all such waiters would mean looking at all of them.
So each meter counts for one such waiter at a time, oldest first, in turns. After `2 x slots` starts
its amounts are *reserved*: no other waiter takes any of them before it has started.

Costs
-----
| operation | cost |
|---|---|
| count a start | one step for each waiter it overtakes (see below) |
| count a start at a meter | looks at up to 3 waiters (`_LOOKS`) |
| a waiter becomes due, or ceases to be | its points, and the waiters parked there |
| a zombie or a ration comes or goes | due waiters x zombies x claims |

Each step along a line is one overtaking of some waiter, and a waiter is overtaken a bounded number
of times. So over its whole wait a waiter causes a constant number of steps, however long the lines.

Known limits
------------
- Two kinds of waiters are stepped over without being counted, so the bound above does not cover
  them: patterns that wait under the same prefix and do not meet the start, and waiters that a
  zombie blocks. A start is as slow as there are of these in its lines.
- Whether a waiter will end in time is decided when it is looked at. A parked waiter is not looked
  at again before the due one has ceased to be due.
- For amounts the bound holds per waiter from the moment when its turn to be counted comes.
- One waiter at a time can have a given meter reserved; others that need the same meter and are due
  go first by rank, but have nothing reserved.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.kernel.lines import WaitingLine
from interlock.kernel.meters import Meter
from interlock.kernel.places import Place
from interlock.kernel.shelves import Point, Shelf
from interlock.kernel.table import Table, conflicts_at, grant_blocks
from interlock.kernel.waiters import Grant, Rank, Waiter

RESERVED_RANK: Rank = (-1e301, 0.0, 0.0)
"""After requests, before everything else: amounts are reserved for it."""
DUE_RANK: Rank = (-1e300, 0.0, 0.0)
"""Before every priority: overtaken too often."""

_LOOKS = 3
"""How many waiters a start looks at to find one that lacks only capacity."""


class Overtaking:
    """The part of `Admission` that counts overtaking and reserves. It owns no queue."""

    def __init__(self, table: Table, strict_priority: bool) -> None:
        self.table = table
        self.slots = table.slots
        self._strict_priority = strict_priority
        """Priority is a promise: a start before waiters with less of it overtakes none of them."""
        self.zombies: dict[Grant, None] = {}
        self.rationed: dict[Meter, None] = {}
        """Meters that give out only so much more. A waiter for one of them holds nothing back."""
        self.due_waiters: dict[Waiter, None] = {}
        """Waiters overtaken often enough. `overtaken.is_due` is False while a zombie blocks one."""
        self.reserved: dict[Waiter, None] = {}
        """Waiters that lack only capacity and have their amounts reserved."""

    # What the queue does for it.

    def _rekey(self, waiter: Waiter, rank: Rank) -> None:
        raise NotImplementedError

    def _list_shelf(self, shelf: Shelf) -> None:
        raise NotImplementedError

    def _unpark(self, shelf: Shelf) -> None:
        raise NotImplementedError

    def reopen(self, meter: Meter) -> None:
        """There is more of a meter: look again at the profiles that lacked it."""
        raise NotImplementedError

    # -- bounded overtaking ---------------------------------------------------------------

    def _overtake(self, waiter: Waiter) -> None:
        """Count the waiters that this start overtakes."""
        turn = waiter.turn
        # Lines are sorted by age: if the first waiter of one is not older, none is.
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
        self, line: WaitingLine[Waiter], point: Point, waiter: Waiter, place: Place, writes: bool
    ) -> None:
        limit = 2 * self.slots.capacity
        overtaker = waiter.arrival
        for older in line.older(waiter):
            if older.overtaken.last_overtaker == overtaker or self._outranks(waiter, older):
                continue
            # A pattern stands in the line of its prefix folder without meeting everything in it.
            patterned = waiter.profile.patterned or older.profile.patterned
            if patterned and not conflicts_at(point, older, place, writes):
                continue
            overtaken = older.own_overtaken()
            # The start may pass it in several lines, which counts once.
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
        """Let no younger waiter that conflicts with this one start before it."""
        waiter.own_overtaken().is_due = True
        self.table.due_count += 1
        for point, writes in _lines_of(waiter):
            point.add_due(waiter, writes)
        self._rank_as_due(waiter)

    def _suspend_due(self, waiter: Waiter) -> None:
        """Let a waiter hold nothing back any more, and list the waiters that it did hold back."""
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
        """Zombies or rations came or went: a waiter that waits for one holds nothing back."""
        for waiter in list(self.due_waiters):
            if self._is_held_up(waiter):
                self._suspend_due(waiter)
            elif not waiter.overtaken.is_due:
                self._make_due(waiter)

    def _is_held_up(self, waiter: Waiter) -> bool:
        """Whether it waits for something that may take any time: a zombie, or a rationed meter."""
        if self.rationed and any(meter in self.rationed for meter, _ in waiter.profile.amounts):
            return True
        return self._zombie_blocks(waiter)

    def _zombie_blocks(self, waiter: Waiter) -> bool:
        return any(grant_blocks(grant, waiter) for grant in self.zombies)

    def _overtake_at_meter(self, meter: Meter, waiter: Waiter) -> None:
        """Count a start for one waiter that lacks only capacity, one such waiter at a time.

        They take turns, so that each is reached; and each stays until it has been overtaken often
        enough to go first.
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
        if counted.turn >= waiter.turn or self._outranks(waiter, counted):
            return
        # It may be overtaken at several meters by one start, which counts once.
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
            return False  # It is blocked there. Only a shortcut: `blocker` would say so too.
        if meter is self.slots and waiter.profile.short(waiter) is not None:
            return False
        if self.rationed and self._is_held_up(waiter):
            return False
        return self.table.blocker(waiter) is None

    def _next_in_turn(self, meter: Meter) -> Waiter | None:
        """Return the next waiter for a meter, oldest first, and then from the start again."""
        for waiter in meter.turns:
            if waiter.item is not None:
                return waiter
        meter.turns = iter(meter.line.items[meter.line.start :])
        return next((waiter for waiter in meter.turns if waiter.item is not None), None)

    def _reserve(self, waiter: Waiter) -> None:
        """Let a waiter go first; reserve its amounts, unless one of them is reserved already.

        All or none: two waiters that each had a part of what both need would wait for ever.
        """
        amounts = waiter.profile.amounts
        if amounts and all(meter.reserved is None for meter, _ in amounts):
            self.reserved[waiter] = None
            for meter, _ in amounts:
                meter.reserved = waiter
            # Before the others of its profile: if one of them came up first, the reservation would
            # count as a lack for it, and set the whole profile aside.
            self._rekey(waiter, RESERVED_RANK)
        self._rank_as_due(waiter)

    def _review_reserved(self) -> None:
        """Drop the reservations of waiters that have come to lack more than capacity."""
        for waiter in list(self.reserved):
            rationed = self.rationed and self._is_held_up(waiter)
            if rationed or self.table.blocker(waiter) is not None:
                self._unreserve(waiter)

    def _rank_as_due(self, waiter: Waiter) -> None:
        """Give a due waiter the top rank."""
        if waiter.item is not None and waiter.item[0] > DUE_RANK:
            self._rekey(waiter, DUE_RANK)

    def _unreserve(self, waiter: Waiter) -> None:
        """End a reservation: its waiter has started, left, or lacks more than capacity."""
        del self.reserved[waiter]
        if waiter.item is not None:
            self._rekey(waiter, DUE_RANK)
        for meter, _ in waiter.profile.amounts:
            if meter.reserved is waiter:
                meter.reserved = None
                self.reopen(meter)


def _lines_of(waiter: Waiter) -> Iterator[tuple[Point, bool]]:
    """The points at which a waiter stands in line, each with whether it is to write."""
    for place, writes in waiter.needs:
        for point in place.lines_at:
            yield point, writes

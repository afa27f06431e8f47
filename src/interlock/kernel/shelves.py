"""Points, and the shelves on which the waiters that they block are kept.

A shelf is a pair of heaps (readers and writers) per point and profile. A waiter that the point's
counts do not exclude, but that a due waiter holds back, is *parked*: it is on the shelf but in no
heap, so that `best` does not return it over and over.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop
from typing import TYPE_CHECKING

from interlock.kernel.lines import WaitingLine

if TYPE_CHECKING:
    from interlock.kernel.waiters import Grant, Item, Profile, Waiter


class Point:
    """A count of holds, the shelves of the waiters that it blocks, and the lines at it."""

    __slots__ = (
        "branched",
        "due_count",
        "parks_at",
        "readers",
        "reading",
        "shelves",
        "writers",
        "writing",
    )

    def __init__(self, parks_at: Point | None = None) -> None:
        self.readers = 0
        """Holds for reading; `writers` for writing."""
        self.writers = 0
        self.shelves: dict[Profile, Shelf] | None = None
        self.reading: WaitingLine[Waiter] | None = None
        self.writing: WaitingLine[Waiter] | None = None
        self.due_count = 0
        """How many of the waiters in its lines are due."""
        self.branched = False
        """Whether there is something below: then other waiters that matter stand in other lines."""
        self.parks_at = parks_at
        """Where waiters are parked that a due waiter in line here holds back; None: here.

        It is set for the *below* of a folder. Patterns pass the lines of waiters below their
        prefix, but do not look at the count of what is held there."""

    def line(self, writes: bool) -> WaitingLine[Waiter]:
        """Return the line of the waiters that want to write, or to read."""
        line = self.writing if writes else self.reading
        if line is None:
            line = WaitingLine()
            if writes:
                self.writing = line
            else:
                self.reading = line
        return line

    def add_due(self, waiter: Waiter, writes: bool) -> None:
        """Let no younger waiter pass this one."""
        self.line(writes).due_waiters.append(waiter)
        self.due_count += 1

    def remove_due(self, waiter: Waiter, writes: bool) -> None:
        """Let every waiter pass this one again."""
        self.line(writes).due_waiters.remove(waiter)
        self.due_count -= 1

    def due_ahead(self, writes: bool) -> Iterator[Waiter]:
        """Yield the due waiters that must not be passed by one that wants to write, or to read."""
        if self.writing is not None:
            yield from self.writing.due_waiters
        if writes and self.reading is not None:
            yield from self.reading.due_waiters

    def bars(self, best: Waiter, writes: bool) -> bool:
        """Whether no waiter on the shelf of `best` can start, because of a due waiter here.

        Only a shortcut, to avoid looking at each of them. It is taken where it is obvious: all of
        them stand in one line, there are no patterns, and the oldest of them is no exception.
        """
        line = self.line(writes)
        oldest = line.oldest()
        if self.branched or line.patterned or best.estimate is not None or oldest is None:
            return False
        for ahead in self.due_ahead(writes):
            if ahead.turn < oldest.turn and not ahead.profile.patterned:
                return True
        rest = line.items[line.start + 1 : line.start + 2]
        alone = not rest or rest[0].turn > oldest.turn
        return writes and oldest.overtaken.is_due and alone and best.turn > oldest.turn

    def excludes(self, writes: bool, kin: tuple[Grant, ...]) -> bool:
        """Whether a grant other than the kin holds it in a way that excludes this use."""
        readers, writers = self.readers, self.writers
        for grant in kin:
            for place, held_for_writing in grant.places:
                if self in place.marks or self is place.exact:
                    if held_for_writing:
                        writers -= 1
                    else:
                        readers -= 1
        return writers > 0 or (writes and readers > 0)


class Shelf:
    """Waiters of one profile that watch one point; without a point, those that nothing blocks.

    Not all of them need be blocked. When a point is released its shelf is *listed* in the profile,
    and its waiters are looked at one by one, best first, when there is capacity for a start.
    """

    __slots__ = ("listed", "parked", "point", "profile", "readers", "writers")

    def __init__(self, profile: Profile, point: Point | None) -> None:
        self.profile = profile
        self.point = point
        self.readers: list[Item] = []
        self.writers: list[Item] = []
        self.parked: list[Item] = []
        """Waiters that a due waiter holds back, not the counts of this point."""
        self.listed: tuple[Item, int, Shelf] | None = None
        """Its live entry in the profile's heap; None while it is not listed."""

    def heap(self, writes: bool) -> list[Item]:
        """Return the heap of the waiters that want to write, or to read."""
        return self.writers if writes else self.readers

    def best(self) -> Item | None:
        """Return the best waiter that the point does not block."""
        point = self.point
        if point is None:
            return _first(self.writers)
        # All waiters of a shelf have the same kin, so the count is corrected for them once.
        kin = self.profile.kin
        if kin:
            no_reader, no_writer = point.excludes(False, kin), point.excludes(True, kin)
        else:
            no_reader = point.writers > 0
            no_writer = no_reader or point.readers > 0
        reader = None if no_reader or not self.readers else _first(self.readers)
        writer = None if no_writer or not self.writers else _first(self.writers)
        if point.due_count and not self.profile.exempt:
            if reader is not None and point.bars(reader[2], False):
                reader = None
            if writer is not None and point.bars(writer[2], True):
                writer = None
        if reader is not None and (writer is None or reader < writer):
            return reader
        return writer


def _first(heap: list[Item]) -> Item | None:
    """Return the best live item of a heap; drop items of waiters that left or were rekeyed."""
    while heap:
        item = heap[0]
        if item[2].item is item:
            return item
        heappop(heap)
    return None

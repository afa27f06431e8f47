"""Points, and the shelves on which waiters are kept there."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop
from typing import TYPE_CHECKING

from interlock.kernel.lines import Line

if TYPE_CHECKING:
    from interlock.kernel.waiters import Grant, Item, Profile, Waiter


class Point:
    """A count of holds, those whom it blocks, and the lines of those who wait here."""

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
        self.writers = 0
        self.shelves: dict[Profile, Shelf] | None = None
        self.reading: Line | None = None
        self.writing: Line | None = None
        self.due_count = 0
        """How many of those who stand here nobody may pass."""
        self.branched = False
        """Whether others, who wait for something below, stand in other lines."""
        self.parks_at = parks_at
        """Where those are parked whom somebody in line here holds back, if not here.

        Patterns pass the lines of those who wait below their prefix, but do not care for the
        count of what is held there."""

    def line(self, writes: bool) -> Line:
        """The line of those who want to write, or of those who want to read."""
        line = self.writing if writes else self.reading
        if line is None:
            line = Line()
            if writes:
                self.writing = line
            else:
                self.reading = line
        return line

    def add_due(self, waiter: Waiter, writes: bool) -> None:
        """Let nobody younger past this waiter."""
        self.line(writes).due_waiters.append(waiter)
        self.due_count += 1

    def remove_due(self, waiter: Waiter, writes: bool) -> None:
        """Let everybody past this waiter again."""
        self.line(writes).due_waiters.remove(waiter)
        self.due_count -= 1

    def due_ahead(self, writes: bool) -> Iterator[Waiter]:
        """Those who may not be passed by somebody who wants to write, or to read."""
        if self.writing is not None:
            yield from self.writing.due_waiters
        if writes and self.reading is not None:
            yield from self.reading.due_waiters

    def bars(self, best: Waiter, writes: bool) -> bool:
        """Whether nobody on the shelf of `best` can start, for somebody here may not be passed.

        Only a shortcut past looking at each of them, which is taken where it is plain to see: all
        stand in one line, no patterns are in play, and the oldest of them is no exception.
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
        """Whether somebody other than the kin holds it in a way that excludes us."""
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
    """Waiters of one profile that watch one point; without a point, those whom nothing blocks.

    Not all of them need be blocked: when a point is released its shelf is *listed* in the
    profile, and its waiters are looked at one by one, best first, when they could be started.
    """

    __slots__ = ("listed", "parked", "point", "profile", "readers", "writers")

    def __init__(self, profile: Profile, point: Point | None) -> None:
        self.profile = profile
        self.point = point
        self.readers: list[Item] = []
        self.writers: list[Item] = []
        self.parked: list[Item] = []
        """Waiters that something else than the counts of this point holds back here."""
        self.listed: tuple[Item, int, Shelf] | None = None

    def heap(self, writes: bool) -> list[Item]:
        """Those who want to write, or those who want to read."""
        return self.writers if writes else self.readers

    def best(self) -> Item | None:
        """The first waiter that the point does not block."""
        point = self.point
        if point is None:
            return _first(self.writers)
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
    """The best of a heap, past those that are no longer there or were given another item."""
    while heap:
        item = heap[0]
        if item[2].item is item:
            return item
        heappop(heap)
    return None

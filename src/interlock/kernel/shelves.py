"""Points, and the shelves on which waiters are kept there."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.kernel.lines import Lines
    from interlock.kernel.waiters import Grant, Item, Profile


class Point:
    """A count of holds, and those whom it blocks."""

    __slots__ = ("lines", "readers", "shelves", "writers")

    def __init__(self) -> None:
        self.readers = 0
        self.writers = 0
        self.shelves: dict[Profile, Shelf] | None = None
        self.lines: Lines | None = None
        """The lines of the place that this is the own point of."""

    def excludes(self, writes: bool, kin: tuple[Grant, ...]) -> bool:
        """Whether somebody other than the kin holds it in a way that excludes us."""
        readers, writers = self.readers, self.writers
        for grant in kin:
            for place, held_for_writing in grant.places:
                if self in place.marks:
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
        lines = point.lines
        if lines is not None and lines.closed and not self.profile.exempt:
            if reader is not None and lines.bars(reader[2], False):
                reader = None
            if writer is not None and lines.bars(writer[2], True):
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

"""Points, and the shelves on which waiters are kept there."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.kernel.lines import Lines
    from interlock.kernel.waiters import Grant, Key, Profile, Waiter


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
        self.readers: list[tuple[Key, Waiter]] = []
        self.writers: list[tuple[Key, Waiter]] = []
        self.parked: list[tuple[Waiter, bool]] = []
        """Waiters that something else than the counts of this point holds back here."""
        self.listed: tuple[Key, int, Shelf] | None = None

    def heap(self, writes: bool) -> list[tuple[Key, Waiter]]:
        """Those who want to write, or those who want to read."""
        return self.writers if writes else self.readers

    def best(self) -> tuple[Waiter, bool] | None:
        """The first waiter that the point does not block, and whether it wants to write."""
        point = self.point
        if point is None:
            waiter = self._first(self.writers)
            return None if waiter is None else (waiter, True)
        kin = self.profile.kin
        no_reader, no_writer = point.writers > 0, point.writers > 0 or point.readers > 0
        if kin:
            no_reader, no_writer = point.excludes(False, kin), point.excludes(True, kin)
        reader = None if no_reader else self._first(self.readers)
        writer = None if no_writer else self._first(self.writers)
        if not self.profile.exempt and point.lines is not None and point.lines.closed:
            if reader is not None and point.lines.bars(reader, False):
                reader = None
            if writer is not None and point.lines.bars(writer, True):
                writer = None
        if reader is not None and (writer is None or reader.key < writer.key):
            return reader, False
        return None if writer is None else (writer, True)

    def _first(self, heap: list[tuple[Key, Waiter]]) -> Waiter | None:
        """The best of a heap, past those that are no longer there or were given another key."""
        while heap:
            key, waiter = heap[0]
            if waiter.alive and waiter.key is key and waiter.shelf is self:
                return waiter
            heappop(heap)
        return None

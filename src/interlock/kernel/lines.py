"""Who waits at a place, in the order in which they became ready.

Lines are there to count overtaking: a start goes past everybody older who stands in a line that it
passes. Nobody may be overtaken for ever: after a number of times a waiter closes its lines, and
nobody younger goes past it any more. That number also bounds what counting costs, for each step
along a line is one of those times for somebody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.kernel.shelves import Point
    from interlock.kernel.waiters import Waiter


class Line:
    """The waiters of one kind at one place, oldest first."""

    __slots__ = ("closers", "items", "live", "patterned", "place", "start")

    def __init__(self, place: Lines) -> None:
        self.place = place
        self.items: list[Waiter] = []
        """From `start` on: those who wait, and some who do so no more."""
        self.start = 0
        self.live = 0
        self.patterned = 0
        """How many of them claim patterns."""
        self.closers: list[Waiter] = []
        """Those in this line that nobody younger may pass any more."""

    def join(self, waiter: Waiter) -> None:
        """Stand at the end; waiters join in the order in which they became ready."""
        items = self.items
        if len(items) > 2 * self.live + 8:
            # Those who left from the middle are still in the list; sweep before they pile up.
            self.items = items = [item for item in items if item.item is not None]
            self.start = 0
        items.append(waiter)
        self.live += 1
        if waiter.profile.patterned:
            self.patterned += 1

    def leave(self, waiter: Waiter) -> None:
        """A waiter (that has no item any more) leaves."""
        self.live -= 1
        if waiter.profile.patterned:
            self.patterned -= 1
        items, start = self.items, self.start
        while start < len(items) and items[start].item is None:
            start += 1
        if start > 64 and start * 2 > len(items):
            del items[:start]
            start = 0
        self.start = start

    def oldest(self) -> Waiter | None:
        """Who stands first."""
        return self.items[self.start] if self.start < len(self.items) else None

    def older(self, waiter: Waiter) -> Iterator[Waiter]:
        """Those in line who became ready before this waiter did."""
        for index in range(self.start, len(self.items)):
            item = self.items[index]
            if item.turn >= waiter.turn:
                return
            if item.item is not None:
                yield item

    def close(self, waiter: Waiter) -> None:
        """Let nobody younger past this waiter."""
        self.closers.append(waiter)
        self.place.closed += 1

    def reopen(self, waiter: Waiter) -> None:
        """Let everybody past this waiter again."""
        self.closers.remove(waiter)
        self.place.closed -= 1


class Lines:
    """Those who want to read, and those who want to write, with the point where they are kept."""

    __slots__ = ("branches", "closed", "point", "readers", "writers")

    def __init__(self, point: Point) -> None:
        self.point = point
        self.branches: Sized = ()
        """What is claimed below: those who wait for that stand elsewhere."""
        self.readers: Line | None = None
        self.writers: Line | None = None
        self.closed = 0
        """How many of those who stand here nobody may pass."""

    def of(self, writes: bool) -> Line:
        """The line of those who write, or of those who read."""
        if writes:
            if self.writers is None:
                self.writers = Line(self)
            return self.writers
        if self.readers is None:
            self.readers = Line(self)
        return self.readers

    def bars(self, best: Waiter, writes: bool) -> bool:
        """Whether nobody on the shelf of `best` can start, for somebody here may not be passed.

        Only a shortcut past looking at each of them, which is taken where it is plain to see: all
        stand in one line, no patterns are in play, and the oldest of them is no exception.
        """
        line = self.of(writes)
        oldest = line.oldest()
        if self.branches or line.patterned or best.estimate is not None or oldest is None:
            return False
        for other in (self.writers, self.readers if writes else None):
            for ahead in other.closers if other is not None else ():
                if ahead.turn < oldest.turn and not ahead.profile.patterned:
                    return True
        rest = line.items[line.start + 1 : line.start + 2]
        alone = not rest or rest[0].turn > oldest.turn
        return writes and oldest.passed.closes and alone and best.turn > oldest.turn

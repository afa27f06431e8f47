"""Who waits at a point, in the order in which they became ready, and who went past them.

Whoever starts past an older one also starts past everybody older still, so the first in line is
always the most overtaken one, and only its count is ever needed. That makes overtaking cheap to
count: a start looks at the head of a few lines, however many wait.

A task stands in several lines, one or more for each claim, and may be overtaken a number of times
in all; each line gets an even share of that number, so that the sum holds without adding up.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.kernel.waiters import Waiter


class Line:
    """The waiters of one kind at one point, oldest first."""

    __slots__ = ("items", "live", "most_shares", "passed")

    def __init__(self) -> None:
        self.items: deque[Waiter] = deque()
        self.live = 0
        self.most_shares = 1
        """In how many lines somebody stands who stands in this one, at most."""
        self.passed: list[int] = []
        """When each of those that went past the head became ready."""

    def join(self, waiter: Waiter) -> None:
        """Stand at the end; waiters join in the order in which they became ready."""
        if len(self.items) > 2 * self.live + 32:
            # Those who left from the middle are still in the queue; sweep before they pile up.
            self.items = deque(item for item in self.items if item.alive)
        self.items.append(waiter)
        self.live += 1
        if len(waiter.lines) > self.most_shares:
            self.most_shares = len(waiter.lines)

    def left(self, waiter: Waiter) -> Waiter | None:
        """A waiter (no longer alive) has left: the new head, if that has changed."""
        self.live -= 1
        items = self.items
        if items[0] is not waiter:
            return None
        while items and not items[0].alive:
            items.popleft()
        if not items:
            self.passed.clear()
            self.most_shares = 1
            return None
        head = items[0]
        if self.passed:
            self.passed = [turn for turn in self.passed if turn > head.turn]
        return head

    def overtaken(self, waiter: Waiter) -> int:
        """How often a waiter in this line has been overtaken here."""
        return sum(turn > waiter.turn for turn in self.passed)


class Lines:
    """Those who want to read, and those who want to write."""

    __slots__ = ("readers", "writers")

    def __init__(self) -> None:
        self.readers: Line | None = None
        self.writers: Line | None = None

    def of(self, writes: bool) -> Line:
        """The line of those who write, or of those who read."""
        if writes:
            if self.writers is None:
                self.writers = Line()
            return self.writers
        if self.readers is None:
            self.readers = Line()
        return self.readers

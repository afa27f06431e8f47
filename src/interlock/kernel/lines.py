"""Who waits at a place, in the order in which they became ready.

Lines are there to count overtaking: a start goes past everybody older who stands in a line that it
passes. Nobody may be overtaken for ever: after a number of times a waiter closes its lines, and
nobody younger goes past it any more. That number also bounds what counting costs, for each step
along a line is one of those times for somebody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.kernel.waiters import Waiter


class Line:
    """The waiters of one kind at one place, oldest first."""

    __slots__ = ("due_waiters", "items", "live", "patterned", "start")

    def __init__(self) -> None:
        self.items: list[Waiter] = []
        """From `start` on: those who wait, and some who do so no more."""
        self.start = 0
        self.live = 0
        self.patterned = 0
        """How many of them claim patterns."""
        self.due_waiters: list[Waiter] = []
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

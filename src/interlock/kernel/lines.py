"""Lines: the waiters at a point, in the order in which they became ready.

Lines exist to count overtaking: a start overtakes every older waiter that stands in a line which it
passes (see `overtaking`). A waiter leaves from anywhere in a line by setting its `item` to None; it
stays in the list until it is swept, so that leaving costs nothing. Sweeping costs a constant amount
per waiter that joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class _Profile(Protocol):
    @property
    def patterned(self) -> bool: ...


class Aged(Protocol):
    """What a line needs to know of a waiter."""

    @property
    def turn(self) -> int:
        """When it became ready."""

    @property
    def item(self) -> object | None:
        """None once it no longer waits."""

    @property
    def profile(self) -> _Profile:
        """Whether it claims patterns."""


W = TypeVar("W", bound=Aged)


class WaitingLine(Generic[W]):
    """The waiters at one point that want to write, or that want to read; oldest first."""

    __slots__ = ("due_waiters", "items", "live", "patterned", "start")

    def __init__(self) -> None:
        self.items: list[W] = []
        """From `start` on: waiters, and some that have left and are not swept yet."""
        self.start = 0
        self.live = 0
        """How many of them still wait."""
        self.patterned = 0
        """How many of those that still wait claim patterns."""
        self.due_waiters: list[W] = []
        """Those in this line that no younger waiter may pass."""

    def join(self, waiter: W) -> None:
        """Add a waiter at the end. Waiters join in the order in which they become ready."""
        items = self.items
        if len(items) > 2 * self.live + 8:
            # Waiters that left from the middle are still in the list: sweep before they pile up.
            self.items = items = [item for item in items if item.item is not None]
            self.start = 0
        items.append(waiter)
        self.live += 1
        if waiter.profile.patterned:
            self.patterned += 1

    def leave(self, waiter: W) -> None:
        """Take in that a waiter has left; its item is None already."""
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

    def oldest(self) -> W | None:
        """Return the first waiter."""
        return self.items[self.start] if self.start < len(self.items) else None

    def older(self, waiter: W) -> Iterator[W]:
        """Yield the waiters in line that became ready before this one."""
        for index in range(self.start, len(self.items)):
            item = self.items[index]
            if item.turn >= waiter.turn:
                return
            if item.item is not None:
                yield item

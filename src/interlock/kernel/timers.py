"""The times at which the kernel has to be woken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush


class Timer:
    """One wake-up; `stale` once it is used or no longer needed."""

    __slots__ = ("action", "stale")

    def __init__(self, action: Callable[[float], None]) -> None:
        self.action = action
        self.stale = False


class Timers:
    """A heap of wake-ups. Stale ones stay in it and are swept when they are the majority.

    Dropping a timer so costs a constant amount on average; removing it from the heap would not.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = 0
        self._stale = 0

    def set(self, at: float, action: Callable[[float], None]) -> Timer:
        """Call `action(now)` at a time, unless the timer is dropped before then."""
        self._serial += 1
        timer = Timer(action)
        heappush(self._heap, (at, self._serial, timer))
        return timer

    def drop(self, timer: Timer | None) -> None:
        """Drop a timer that is no longer needed."""
        if timer is not None and not timer.stale:
            timer.stale = True
            self._stale += 1
            if self._stale > 64 and self._stale * 2 > len(self._heap):
                self._heap = [item for item in self._heap if not item[2].stale]
                heapify(self._heap)
                self._stale = 0

    def next(self) -> float | None:
        """Return the earliest time at which something has to be done."""
        if not self._heap:
            return None
        while self._heap and self._heap[0][2].stale:
            heappop(self._heap)
            self._stale -= 1
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[Timer]:
        """Yield the timers whose time has come, in order; each is used up."""
        while (at := self.next()) is not None and at <= now:
            timer = heappop(self._heap)[2]
            timer.stale = True
            yield timer

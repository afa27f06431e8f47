"""The time of a run: seconds since it began, by the clock of the event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime

_LATE = 0.05
"""A timer that fires this many seconds late indicates that the event loop was blocked."""


class RunClock:
    """Converts between the loop's clock, the kernel's time and the wall clock.

    The wall clock is read once, when the run begins. Setting it back or forward while the run goes
    on changes no timeout.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: float, elapsed: float) -> None:
        self.loop = loop
        self.epoch = epoch
        """When the run began, in seconds since 1970."""
        # A resumed run continues its own time: deadlines that were set before still hold.
        self._zero = loop.time() - elapsed

    def now(self) -> float:
        """Seconds since the run began: the kernel's time."""
        return self.loop.time() - self._zero

    def wall(self) -> float:
        """Seconds since 1970."""
        return self.epoch + self.now()

    def moment(self, at: float) -> datetime:
        """The moment that a kernel time stands for."""
        return datetime.fromtimestamp(self.epoch + at, UTC)

    def call_at(self, at: float, function: Callable[[float], None]) -> asyncio.TimerHandle:
        """Call a function with a kernel time, at that time and not before."""
        when = self._zero + at
        # The sum may have been rounded down, and the kernel would find the tick too early.
        while when - self._zero < at:
            when = math.nextafter(when, math.inf)
        return self.loop.call_at(when, function, at)


class KernelTimer:
    """The one timer that the kernel asks for: it fires at the earliest time of interest."""

    def __init__(self, clock: RunClock, tick: Callable[[], None]) -> None:
        self._clock = clock
        self._tick = tick
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float | None) -> None:
        """Replace the timer; None: no timer is needed."""
        self.cancel()
        if at is not None:
            self._timer = self._clock.call_at(at, self._fire)

    def cancel(self) -> None:
        """Stop the timer, if it is set."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _fire(self, at: float) -> None:
        late = self._clock.now() - at
        if late < 0:  # loops may be early, by the resolution of their clock
            self.set(at)
        elif late > _LATE:
            # The loop was blocked. Attempts that have ended meanwhile are about to report it, and
            # must not be timed out because other code was slow. Only once: a loop may be blocked
            # again and again.
            self._timer = self._clock.loop.call_later(_LATE / 10, self._tick)
        else:
            self._tick()

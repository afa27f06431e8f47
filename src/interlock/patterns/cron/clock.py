"""Waking up when something is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context

LONGEST_SLEEP = 60.0
"""A sleep is by the clock of the event loop, which stands still while the machine is suspended and
knows nothing of a wall clock that is set. So the wall clock is looked at that often."""

SET_BACK = 3_600.0
"""A clock that is set back by no more than that is waited for, so that nothing runs twice. One that
was a year ahead is not: jobs begin anew."""


class Clock:
    """Calls `look` when it is time to; `look` says when the next thing is due, if it knows."""

    def __init__(self, wall: Callable[[], float], look: Callable[[], float | None]) -> None:
        self.now = wall
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()
        """Of whoever started it: a job that adds another one passes none of its own on to it."""
        self.is_running = False

    def start(self) -> None:
        """Look now, and go on looking."""
        self.is_running = True
        self._context = copy_context()
        self.wake()

    def wake(self) -> None:
        """Look now: something has changed. Not while it stands still."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.is_running:
            return
        due = self._context.copy().run(self._look)  # a copy: it may be in use further out
        if self.is_running and self._timer is None:
            left = LONGEST_SLEEP if due is None else due - self.now()
            sleep = min(max(left, 0.0), LONGEST_SLEEP)
            self._timer = asyncio.get_running_loop().call_later(sleep, self.wake)

    def stop(self) -> None:
        """Look no more."""
        self.is_running = False
        self.wake()

"""Waking up when something is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context

LONGEST_SLEEP = 60.0
"""The clock of the event loop stands still while the machine is suspended, and does not notice that
the wall clock was set. So the wall clock is read at least this often, in seconds."""

SET_BACK = 3_600.0
"""A clock that is set back by no more than this is waited for, so that nothing runs twice. One that
was a year ahead is not: jobs restart."""


class WallClock:
    """Calls `look` when something is due; `look` returns when that will be next, or None."""

    def __init__(self, wall: Callable[[], float], look: Callable[[], float | None]) -> None:
        self.now = wall
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()
        """The context of `start`: a job that adds another job must not pass its own on to it."""
        self.is_running = False

    def start(self) -> None:
        """Look now, and from then on whenever something is due."""
        self.is_running = True
        self._context = copy_context()
        self.wake()

    def wake(self) -> None:
        """Look now, because something has changed; nothing happens while it is stopped."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.is_running:
            return
        # A copy of the context: it may be entered already, further up the stack.
        due = self._context.copy().run(self._look)
        if self.is_running and self._timer is None:
            left = LONGEST_SLEEP if due is None else due - self.now()
            sleep = min(max(left, 0.0), LONGEST_SLEEP)
            self._timer = asyncio.get_running_loop().call_later(sleep, self.wake)

    def stop(self) -> None:
        """Stop looking."""
        self.is_running = False
        self.wake()

"""Whether a coordinator is used by threads or on an event loop: never both at once."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from interlock.errors import NotRunning, UsageError


class Sides:
    """Who is in there: threads, or the callers on one event loop; the others are refused.

    Threads have one Runtime together, an event loop has another, and neither knows the claims and
    the limit of the other. They cannot share one: async agents belong to the loop of those who
    await them, and a loop may be closed at any time, whoever else is at work on it.
    """

    def __init__(self) -> None:
        # Reentrant: the collector of garbage may end a stream in the middle of this.
        self._lock = threading.RLock()
        self._guests = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where they are; None for threads."""
        self._process = os.getpid()

    @contextmanager
    def entered(self, loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
        """Be in there for a block."""
        self.enter(loop)
        try:
            yield
        finally:
            self.leave(loop)

    def enter(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Come in, unless somebody from elsewhere is there."""
        if self._process != os.getpid():
            self._after_fork()
        with self._lock:
            if self._loop is not loop:
                if self._guests and not (self._loop is not None and self._loop.is_closed()):
                    raise UsageError(self._refusal(loop))
                self._loop, self._guests = loop, 0
            self._guests += 1

    def leave(self, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._lock:
            if self._loop is loop:  # otherwise its loop was closed, and others have come
                self._guests -= 1

    def _refusal(self, loop: asyncio.AbstractEventLoop | None) -> str:
        why = "two runs at once would not see each other's files and tests"
        if self._loop is None:
            return (
                "execute_parallel(), stream() or a `with` block of this coordinator is in "
                f"progress, and {why}: await asyncio.to_thread(coordinator.execute_parallel, ...) "
                "beside it, wait for its end, or make another coordinator"
            )
        there = "an event loop" if loop is None else "another event loop"
        return (
            f"execute() or an `async with` block of this coordinator is in progress on {there}, "
            f"and {why}: call execute() there, wait for its end, or make another coordinator"
        )

    def _after_fork(self) -> None:
        """Threads and loops did not come along into this process, and nobody in there leaves."""
        if self._guests:
            raise NotRunning(
                "this coordinator was in use when this process was forked, and its run belongs to "
                "the other process; make a new coordinator here"
            )
        self._process, self._lock = os.getpid(), threading.RLock()

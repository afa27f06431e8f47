"""One run for several threads: opened by the first that comes, closed after the last."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from interlock.errors import AttemptsStillAlive, FatalError, NotRunning, ShuttingDown
from interlock.patterns.coordinator.coordinated_run import CoordinatedRun
from interlock.patterns.coordinator.side import Sides
from interlock.runtime.background import Background
from interlock.runtime.log import LOGGER

_MOMENT = 0.25
"""Seconds in which a thread ends that has said that it is done."""


class House:
    """What `SharedRuntime` is on an event loop, for threads: each comes in and goes."""

    def __init__(
        self,
        make: Callable[[], tuple[Background, CoordinatedRun]],
        sides: Sides,
        *,
        durable: bool,
    ) -> None:
        self._make = make
        self._durable = durable
        self._sides = sides
        # Reentrant: the collector of garbage may end a stream in the middle of this.
        self._lock = threading.RLock()
        self._guests = 0
        self._open: tuple[Background, CoordinatedRun] | None = None
        self._closing: Background | None = None
        self._over = False

    @property
    def run(self) -> CoordinatedRun | None:
        """The run that is open, if one is."""
        found = self._open
        return None if found is None else found[1]

    @contextmanager
    def entered(self) -> Iterator[tuple[Background, CoordinatedRun]]:
        """Be in there for a block."""
        found = self.enter()
        try:
            yield found
        finally:
            self.leave()

    def enter(self) -> tuple[Background, CoordinatedRun]:
        self.check_open()
        self._sides.enter(None)
        try:
            with self._lock:
                self._guests += 1  # first, so that nobody who leaves meanwhile closes it
                try:
                    if self._open is None:
                        self._wait_for_the_last_one()
                        self._open = self._make()
                except BaseException:
                    self._guests -= 1
                    raise
                return self._open
        except BaseException:
            self._sides.leave(None)
            raise

    def leave(self, *, wait: bool = False) -> None:
        """One guest less; after the last one the run is left.

        With `wait`, it is left with all who are in it. Otherwise threads that will not stop do not
        hold anybody up: whoever comes next waits for them, for as long as the grace.
        """
        try:
            with self._lock:
                self._guests -= 1
                if self._open is None or (self._guests and not wait):
                    return
                background = self._open[0]
                if not self._guests:
                    self._closing, self._open = background, None
            with suppress(FatalError, NotRunning):  # told by its result; or over already
                wait = wait or not background.runtime.progress().zombies
                background.close(wait=wait)
                if self._durable and not wait:
                    # Mostly a thread on its way out. When it is gone, so is the journal's lock,
                    # which whoever resumes the run needs.
                    background.await_end(_MOMENT)
        finally:
            self._sides.leave(None)

    async def vacated(self) -> None:
        """For callers on an event loop: wait for what threads have left behind."""
        if self._closing is not None:
            await asyncio.to_thread(self._wait_for_the_last_one)

    def _wait_for_the_last_one(self) -> None:
        """What is left of it holds its claims against the next one only when it is over."""
        with self._lock:
            closing, self._closing = self._closing, None
            if closing is not None:
                try:
                    closing.close()
                except (FatalError, NotRunning):
                    pass
                except AttemptsStillAlive as error:
                    LOGGER.log(logging.WARNING, "left_in_trouble", exc_info=error)

    def check_open(self) -> None:
        if self._over:
            raise ShuttingDown("this coordinator has been shut down, and takes no new work")

    def refuse(self) -> None:
        """Let nobody in from now on."""
        self._over = True

    def shut_down(self, timeout: float) -> None:
        """Let what runs finish within some time, then stop it."""
        self.refuse()
        found = self._open
        background = self._closing if found is None else found[0]
        if background is None or (found is None and background.is_over):
            return
        try:
            background.wait(lambda: background.runtime.shutdown(timeout))
        except (NotRunning, asyncio.CancelledError):
            # The last one has left meanwhile; then leaving says who would not stop.
            with suppress(FatalError, NotRunning):
                background.close()

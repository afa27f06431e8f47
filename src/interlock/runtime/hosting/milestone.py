"""A moment that is waited for on event loops and in threads alike."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class Milestone:
    """Not reached, then reached for good.

    `asyncio.wrap_future` around a `concurrent.futures.Future` does the same, but wakes the loop
    through its self-pipe even on its own thread; that is most of the cost of a short run.
    """

    def __init__(self) -> None:
        self._reached = threading.Event()
        # Reentrant, as every lock that code run by the garbage collector may want.
        self._lock = threading.RLock()
        self._waiters: list[asyncio.Future[None]] = []

    def is_reached(self) -> bool:
        """Whether it has come."""
        return self._reached.is_set()

    def reach(self) -> None:
        """Wake everything that waits. From any thread."""
        with self._lock:
            self._reached.set()
            waiters, self._waiters = self._waiters, []
        here = asyncio._get_running_loop()  # unlike the public one, it does not raise in threads
        for waiter in waiters:
            loop = waiter.get_loop()
            if loop is here:
                _wake(waiter)
            else:
                with suppress(RuntimeError):  # the loop was closed, and its waiters with it
                    loop.call_soon_threadsafe(_wake, waiter)

    async def wait(self) -> None:
        """Wait on an event loop. Cancelling the wait affects no other waiter."""
        with self._lock:
            if self._reached.is_set():
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
        await waiter

    def wait_in_thread(self, timeout: float | None = None) -> None:
        """Block this thread; TimeoutError after `timeout` seconds."""
        if not self._reached.wait(timeout):
            raise TimeoutError(f"not reached after {timeout:g} s")


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

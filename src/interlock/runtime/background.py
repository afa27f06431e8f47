"""A Runtime for code that is not async: on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from interlock.errors import AttemptsStillAlive, NotRunning
from interlock.runtime.runtime import Runtime

T = TypeVar("T")


_ABANDONED: list[set[asyncio.Task[Any]]] = []
"""Tasks that would not end, kept from being destroyed: that would run their `finally` blocks."""


def run_to_the_end(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as asyncio.run() does, but do not wait for tasks that will not end.

    Their loop is closed, so that they never run again.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(main)
    except AttemptsStillAlive:
        left = asyncio.all_tasks(runner.get_loop())
        if left:
            _ABANDONED.append(left)
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            runner.get_loop().close()
        raise
    finally:
        if not runner.get_loop().is_closed():
            runner.close()


class _CalledOff(Exception):
    """Nobody is to wait for what was submitted."""


class Background:
    """Enters a Runtime when it is made; `close()` leaves it. Usable from any thread.

    `runtime` can be used from here as from everywhere: what is awaited in async code has a
    `.wait()`. The thread is daemonic: a program that ends without `close()` is not held up.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.runtime = Runtime(*args, **options)
        self._entered: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._left: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Future[bool] | None = None
        self._closing = threading.Lock()
        self._process = os.getpid()
        threading.Thread(target=self._work, name="interlock", daemon=True).start()
        self._entered.result()

    def _work(self) -> None:
        try:
            run_to_the_end(self._live())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._left.set_exception(error)
            if not self._entered.done():
                self._entered.set_exception(error)
        else:
            self._left.set_result(None)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = self._loop.create_future()
        with contextlib.suppress(_CalledOff):
            async with self.runtime:
                self._entered.set_result(None)
                if await self._leave:
                    raise _CalledOff  # leaving the block by an error is how to cancel

    @property
    def is_over(self) -> bool:
        """Whether the Runtime was left."""
        return self._left.done()

    def wait(self, start: Callable[[], Awaitable[T]], timeout: float | None = None) -> T:
        """Have something awaited on the loop, and wait for it."""
        self._check()
        return self.runtime.loop_thread.wait(start, timeout)

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Have a coroutine run on the loop, and wait for nothing; cancelling the Future ends it."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._check())
        except BaseException as error:
            work.close()
            if isinstance(error, RuntimeError):  # its loop was closed at this moment
                raise NotRunning("this has been closed") from None
            raise

    def _check(self) -> asyncio.AbstractEventLoop:
        self._check_process()
        if self._loop is None or self._left.done():
            raise NotRunning("this has been closed")
        return self._loop

    def _check_process(self) -> None:
        if self._process != os.getpid():  # the thread did not come along
            raise NotRunning("this belongs to the process that this one was forked from")

    def close(
        self, *, cancel: bool = False, timeout: float | None = None, wait: bool = True
    ) -> None:
        """Leave the Runtime: wait for all that was submitted, or `cancel` it. Twice is fine.

        Without `wait`, it is left when all has ended, and this returns at once.
        """
        self._check_process()
        with self._closing, contextlib.suppress(RuntimeError):  # its loop was closed already
            if self._loop is not None and not self._left.done():
                self._loop.call_soon_threadsafe(self._end, cancel)
        if wait:
            self._left.result(timeout)

    def await_end(self, seconds: float) -> None:
        """Wait so long at most until the Runtime was left, however that ends."""
        concurrent.futures.wait([self._left], seconds)

    def _end(self, cancel: bool) -> None:
        assert self._leave is not None
        if not self._leave.done():
            self._leave.set_result(cancel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(cancel=error is not None)

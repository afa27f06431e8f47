"""Calls from other threads into the one thread that may touch the state of a run.

Three ways in: `call` waits for the result of a function, `wait` for the result of a coroutine, and
`post` waits for nothing. Calls and posts of one thread are carried out in their order.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from interlock.errors import NotRunning, WouldBlockTheLoop

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds to wait for the event loop before checking whether it has been closed.

A closed loop drops the callbacks that were handed to it, so no answer would ever come.
"""


class LoopThread:
    """Lets other threads do what only the thread of the event loop may do."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        together: Callable[[Callable[[], None]], None] = lambda work: work(),
    ) -> None:
        self._loop = loop
        self._ident = threading.get_ident()
        self._process = os.getpid()
        self._together = together
        """Calls a function on the loop and then completes the turn that it began."""
        self._posted: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._is_woken = False
        """Whether the loop has been woken up for posted calls and has not taken them in yet."""

    def is_current(self) -> bool:
        """Whether this is the thread of the event loop."""
        return threading.get_ident() == self._ident

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function on the loop's thread, which may be this one; its result or error."""
        if self.is_current():
            return function(*args)
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            if self._posted:
                self._take_in()  # a thread that posts and then calls is served in that order
            try:
                answer.set_result(function(*args))
            except BaseException as error:  # noqa: BLE001 - raised again, in the calling thread
                answer.set_exception(error)

        self._hand_over(call)
        return self._answer(answer, None)

    def _answer(self, answer: concurrent.futures.Future[T], timeout: float | None) -> T:
        """Wait for the loop's answer; NotRunning if the loop is closed before it comes."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _PATIENCE if until is None else min(_PATIENCE, until - time.monotonic())
            try:
                return answer.result(max(left, 0.0))
            except concurrent.futures.TimeoutError:
                if answer.done():  # the function itself has raised TimeoutError
                    raise
                if self._loop.is_closed():
                    raise NotRunning("the event loop of this Runtime is closed") from None
                if until is not None and time.monotonic() >= until:
                    raise

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Have a function called on the loop, without waiting. NotRunning if the loop is closed.

        Functions are called in the order of posting, and before later calls of this thread. What is
        posted while the loop is busy is taken in together, in one turn: one wake-up serves many.
        """
        self._posted.append((function, args))
        # After the append, so that a thread that finds the loop woken up can rely on being heard.
        if not self._is_woken:
            self._is_woken = True
            self._hand_over(self._take_in)
        elif self._loop.is_closed():
            raise NotRunning("the event loop of this Runtime is closed")

    def _take_in(self) -> None:
        self._is_woken = False
        self._together(self._call_posted)

    def _call_posted(self) -> None:
        posted = self._posted
        try:
            for _ in range(len(posted)):  # no more than these: other callbacks share the loop
                function, args = posted.popleft()
                function(*args)
        finally:
            if posted and not self._is_woken:  # one raised; the others are still to be called
                self._is_woken = True
                self._loop.call_soon(self._take_in)

    def wait(self, start: Callable[[], Awaitable[T]], timeout: float | None) -> T:
        """Await something on the loop, in the context of this thread; blocks until it is done."""
        if self.is_current():
            raise WouldBlockTheLoop("this is the event loop's own thread: write `await` here")
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()
        tasks: list[asyncio.Task[None]] = []

        async def relay() -> None:
            try:
                answer.set_result(await start())
            except BaseException as error:  # noqa: BLE001 - raised again, in the waiting thread
                answer.set_exception(error)

        self._hand_over(lambda: tasks.append(self._loop.create_task(relay())))
        try:
            return self._answer(answer, timeout)
        except concurrent.futures.TimeoutError:
            if answer.done():  # the coroutine itself has raised TimeoutError
                raise
        # A task that gives up waiting gets its slot back first, so wait until it has ended.
        self._hand_over(lambda: tasks and tasks[0].cancel())
        try:
            return self._answer(answer, None)
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            raise TimeoutError(f"not done after {timeout:g} s") from None

    def _hand_over(self, callback: Callable[[], Any]) -> None:
        if os.getpid() != self._process:
            # A fork copies only the thread that called it: no loop runs here that could answer.
            raise NotRunning("this Runtime belongs to the process that this one was forked from")
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            raise NotRunning("the event loop of this Runtime is closed") from None

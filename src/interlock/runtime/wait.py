"""Something to wait for: `await` it in async code, `.wait()` for it in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from interlock.errors import NotRunning, WouldBlockTheLoop

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds to wait for the event loop, before looking whether it was closed: a loop that is closed
forgets what it has been asked to call."""


class Wait(Generic[T]):
    """Nothing happens before it is awaited, or waited for; if it never is, Python warns of it."""

    __slots__ = ("_awaited", "_door", "_start", "_what")

    def __init__(self, door: Door, start: Callable[[], Awaitable[T]], what: str) -> None:
        self._awaited = False
        self._door = door
        self._start = start
        self._what = what

    def __await__(self) -> Generator[Any, None, T]:
        self._awaited = True
        return self._start().__await__()

    def wait(self, timeout: float | None = None) -> T:
        """Block this thread until it is there; TimeoutError after `timeout` seconds."""
        self._awaited = True
        return self._door.wait(self._start, timeout)

    def drop(self) -> str:
        """Do without it; what it would have been."""
        self._awaited = True
        return self._what

    def __del__(self) -> None:
        if not self._awaited:
            text = f"{self._what} was never awaited (in a thread: .wait()), so it did nothing"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)


class Door:
    """Lets other threads do what only the thread of the event loop may do."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        together: Callable[[Callable[[], None]], None] = lambda work: work(),
    ) -> None:
        self._loop = loop
        self._home = threading.get_ident()
        self._process = os.getpid()
        self._together = together
        """Does something on the loop, with all that follows from it, in one turn."""
        self._posted: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._ringing = False
        """Whether the loop has been woken up for what was posted, and has not come yet."""

    def is_home(self) -> bool:
        """Whether this is the thread of the event loop."""
        return threading.get_ident() == self._home

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call it here, or on the loop's thread if that is another one; its result or error."""
        if self.is_home():
            return function(*args)
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            if self._posted:
                self._take_in()  # whoever posts and then calls is served in that order
            try:
                answer.set_result(function(*args))
            except BaseException as error:  # noqa: BLE001 - raised again, in the calling thread
                answer.set_exception(error)

        self._hand_over(call)
        return self._answer(answer, None)

    def _answer(self, answer: concurrent.futures.Future[T], timeout: float | None) -> T:
        """What the loop answers, unless it is closed before it can."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _PATIENCE if until is None else min(_PATIENCE, until - time.monotonic())
            try:
                return answer.result(max(left, 0.0))
            except concurrent.futures.TimeoutError:
                if answer.done():  # it was the answer
                    raise
                if self._loop.is_closed():
                    raise NotRunning("the event loop of this Runtime is closed") from None
                if until is not None and time.monotonic() >= until:
                    raise

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Have it called on the loop, and wait for nothing; NotRunning if the loop is closed.

        In the order of posting, and before what is called later. What is posted while the loop is
        busy is taken in together, in one turn: one wake-up serves many.
        """
        self._posted.append((function, args))
        # After the append: whoever sees the bell ring may rely on being heard.
        if not self._ringing:
            self._ringing = True
            self._hand_over(self._take_in)
        elif self._loop.is_closed():
            raise NotRunning("the event loop of this Runtime is closed")

    def _take_in(self) -> None:
        self._ringing = False
        self._together(self._call_posted)

    def _call_posted(self) -> None:
        posted = self._posted
        try:
            for _ in range(len(posted)):  # no more than these: others have a loop to share
                function, args = posted.popleft()
                function(*args)
        finally:
            if posted and not self._ringing:  # one of them raised: that is not the others' fault
                self._ringing = True
                self._loop.call_soon(self._take_in)

    def wait(self, start: Callable[[], Awaitable[T]], timeout: float | None) -> T:
        """Have something awaited on the loop, in the context of this thread, and wait for it."""
        if self.is_home():
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
            if answer.done():  # the TimeoutError was the answer
                raise
        # Whoever gives up gets its slot back first, so wait for the end of the wait.
        self._hand_over(lambda: tasks and tasks[0].cancel())
        try:
            return self._answer(answer, None)
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            raise TimeoutError(f"not there after {timeout:g} s") from None

    def _hand_over(self, callback: Callable[[], Any]) -> None:
        if (
            os.getpid() != self._process
        ):  # the loop's thread did not come along, nobody would answer
            raise NotRunning("this Runtime belongs to the process that this one was forked from")
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            raise NotRunning("the event loop of this Runtime is closed") from None


async def undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, however often the waiting for it is cancelled; cancelled then, if so."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled

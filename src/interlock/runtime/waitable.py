"""The result of a call that may have to wait: `await` it in async code, `.wait()` in a thread."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

from interlock.runtime.loop_thread import LoopThread

T = TypeVar("T")


class Waitable(Generic[T]):
    """A call that has not begun: it starts when it is awaited or waited for.

    If it never is, Python warns, as for a coroutine.
    """

    __slots__ = ("_awaited", "_loop_thread", "_start", "_what")

    def __init__(
        self, loop_thread: LoopThread, start: Callable[[], Awaitable[T]], what: str
    ) -> None:
        self._awaited = False
        self._loop_thread = loop_thread
        self._start = start
        self._what = what

    def __await__(self) -> Generator[Any, None, T]:
        self._awaited = True
        return self._start().__await__()

    def wait(self, timeout: float | None = None) -> T:
        """Block this thread until it is done; TimeoutError after `timeout` seconds."""
        self._awaited = True
        return self._loop_thread.wait(self._start, timeout)

    def drop(self) -> str:
        """Do not start it, without a warning; returns what was called."""
        self._awaited = True
        return self._what

    def __del__(self) -> None:
        if not self._awaited:
            text = f"{self._what} was never awaited (in a thread: .wait()), so it did nothing"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)

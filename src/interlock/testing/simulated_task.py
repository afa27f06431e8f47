"""Tasks and futures of a simulated loop: numbered, and with a door for faults.

They hash by their number, so that a set of them is iterated in the same order in every process;
plain ones hash by their address. Everything else is asyncio's own.
"""

from __future__ import annotations

import asyncio
import linecache
import os.path
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import FrameType, TracebackType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_ASYNCIO = os.path.dirname(asyncio.__file__)


class Waiting(NamedTuple):
    """A task that has not ended, and the line at which it waits."""

    name: str
    place: str

    def __str__(self) -> str:
        return f"{self.name}: {self.place}"


class SimulatedFuture(asyncio.Future[T]):
    """A future that hashes by its number."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimulatedTask(asyncio.Task[T]):
    """A task that hashes by its number and into which a fault can throw."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        *,
        loop: asyncio.AbstractEventLoop,
        number: int,
        name: str,
        context: Context | None,
        ended: Callable[[int], object],
    ) -> None:
        self.number = number  # first: the base class puts the task into a set
        self._course = _Course(coroutine, number, ended)
        super().__init__(self._course, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.number

    def throw(self, exception: BaseException) -> None:
        """Let its next step find `exception` raised at the await, whatever came of the wait."""
        self._course.thrown = exception

    def frames(self) -> list[FrameType]:
        """The frames of the waiting coroutines, from the outermost in; `get_stack()` has one."""
        found = []
        inner: Any = self._course.coroutine
        while inner is not None:
            frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
            if frame is not None:
                found.append(frame)
            inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
        return found

    def waiting(self) -> Waiting:
        """Where it waits: the innermost line that is not asyncio's own."""
        frames = self.frames()
        ours = [f for f in frames if os.path.dirname(f.f_code.co_filename) != _ASYNCIO]
        if not frames:
            return Waiting(self.get_name(), "its frames cannot be seen")
        frame = (ours or frames)[-1]
        code, line = frame.f_code, frame.f_lineno
        text = linecache.getline(code.co_filename, line).strip()
        place = f"{code.co_filename}:{line} in {code.co_qualname}: {text}"
        return Waiting(self.get_name(), place)


class _Course(Coroutine[Any, Any, T]):
    """A task's coroutine as the task drives it: each step passes through here."""

    __slots__ = ("_ended", "_number", "coroutine", "thrown")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], number: int, ended: Callable[[int], object]
    ) -> None:
        self.coroutine = coroutine
        self.thrown: BaseException | None = None
        self._number = number
        self._ended = ended

    def send(self, value: Any) -> Any:
        if self.thrown is not None:
            return self.throw(self.thrown)
        try:
            return self.coroutine.send(value)
        except BaseException:  # the coroutine has ended: StopIteration carries its result
            self._ended(self._number)
            raise

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        # asyncio passes one argument, the exception itself.
        exception = self.thrown
        if exception is None:
            exception = kind if isinstance(kind, BaseException) else kind()
        self.thrown = None
        try:
            return self.coroutine.throw(exception)
        except BaseException:  # as in send()
            self._ended(self._number)
            raise

    def close(self) -> None:
        self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self.coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        # cr_frame, __qualname__ and the like, for reprs and debuggers.
        return getattr(self.coroutine, name)

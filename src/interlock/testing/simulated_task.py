"""Tasks and futures of a simulated loop: numbered, and open to faults.

They hash by their number, so that a set of them iterates in the same order in every process; those
of asyncio hash by their address. In all else they are asyncio's own.
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
        on_end: Callable[[int], object],
    ) -> None:
        self.number = number  # First: the base class puts the task into a set.
        self._stepped = _SteppedCoroutine(coroutine, number, on_end)
        super().__init__(self._stepped, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.number

    def throw(self, exception: BaseException) -> None:
        """Raise `exception` in its next step, whatever the await would have returned."""
        self._stepped.thrown = exception

    def frames(self) -> list[FrameType]:
        """The frames of the waiting coroutines, outermost first; `get_stack()` has only one."""
        found = []
        inner: Any = self._stepped.coroutine
        while inner is not None:
            frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
            if frame is not None:
                found.append(frame)
            inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
        return found

    def waiting(self) -> Waiting:
        """Where it waits: the innermost line outside of asyncio."""
        frames = self.frames()
        ours = [f for f in frames if os.path.dirname(f.f_code.co_filename) != _ASYNCIO]
        if not frames:
            return Waiting(self.get_name(), "its frames cannot be seen")
        frame = (ours or frames)[-1]
        code, line = frame.f_code, frame.f_lineno
        text = linecache.getline(code.co_filename, line).strip()
        place = f"{code.co_filename}:{line} in {code.co_qualname}: {text}"
        return Waiting(self.get_name(), place)


class _SteppedCoroutine(Coroutine[Any, Any, T]):
    """Wraps the coroutine of a task, so that each of its steps passes through here."""

    __slots__ = ("_number", "_on_end", "coroutine", "thrown")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], number: int, on_end: Callable[[int], object]
    ) -> None:
        self.coroutine = coroutine
        self.thrown: BaseException | None = None
        self._number = number
        self._on_end = on_end

    def send(self, value: Any) -> Any:
        if self.thrown is not None:
            return self.throw(self.thrown)
        try:
            return self.coroutine.send(value)
        except BaseException:  # The coroutine has ended: StopIteration carries its result.
            self._on_end(self._number)
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
            self._on_end(self._number)
            raise

    def close(self) -> None:
        self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self.coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        # cr_frame, __qualname__ and the like, for reprs and debuggers.
        return getattr(self.coroutine, name)

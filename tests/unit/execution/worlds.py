"""The three backends behind one face, and a sink that knows what each may report."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any, ParamSpec

from interlock.errors import NotRunning
from interlock.execution.backend import AttemptJob, Launched
from interlock.execution.callables.coroutines import Coroutines
from interlock.execution.callables.threads import Threads
from interlock.execution.ending import Ending
from interlock.execution.processes.process_agent import process
from interlock.execution.processes.process_backend import Processes
from tests.unit.execution import agents

KINDS = ("coroutines", "threads", "processes")
P = ParamSpec("P")


def story(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Recorder:
    """A sink. What breaks the contract of `Backend` fails where it happens."""

    def __init__(self) -> None:
        self.endings: dict[int, Ending] = {}
        self.processes: dict[int, list[Launched]] = {}
        self._gone: dict[int, asyncio.Event] = {}
        self._ended: dict[int, asyncio.Event] = {}
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self.broken: list[str] = []

    def post(self, function: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError as error:
            raise NotRunning(str(error)) from None

    def expect(self, token: int) -> None:
        self._gone[token] = asyncio.Event()
        self._ended[token] = asyncio.Event()

    def launched(self, token: int, launched: Launched) -> None:
        if threading.get_ident() != self._thread:
            self.broken.append("reported from another thread")
        self.processes.setdefault(token, []).append(launched)

    def ended(self, token: int, ending: Ending, *, gone: bool = True) -> None:
        if threading.get_ident() != self._thread:
            self.broken.append("reported from another thread")
        if token in self.endings:
            self.broken.append(f"{token} ended twice")
        self.endings[token] = ending
        self._ended[token].set()
        if gone:
            self.gone(token)

    def gone(self, token: int) -> None:
        if threading.get_ident() != self._thread:
            self.broken.append("reported from another thread")
        if token not in self.endings:
            self.broken.append(f"{token} was gone before it ended")
        if self._gone[token].is_set():
            self.broken.append(f"{token} was gone twice")
        self._gone[token].set()

    async def ending_of(self, token: int) -> Ending:
        await self._ended[token].wait()
        return self.endings[token]

    async def end_of(self, token: int) -> Ending:
        """Wait until an attempt is gone."""
        await self._gone[token].wait()
        return self.endings[token]

    def is_over(self, token: int) -> bool:
        return self._gone[token].is_set()


class World:
    """One backend, its sink, and two pipes to meet a waiting agent at."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.sink = Recorder()
        self.orphans: list[int] = []
        self.orphaned = threading.Event()
        self.fell: list[BaseException] = []
        self.announced = str(folder / "announced")
        self.released = str(folder / "released")
        os.mkfifo(self.announced)
        os.mkfifo(self.released)
        self._token = 0
        loop = asyncio.get_running_loop()
        self.backend: Coroutines | Threads | Processes
        if kind == "coroutines":
            self.backend = Coroutines("house")
        elif kind == "threads":
            self.backend = Threads(loop, self._on_orphan)
        else:
            self.backend = Processes(loop, self._on_orphan)

    def _on_orphan(self, token: int) -> None:
        self.orphans.append(token)
        self.orphaned.set()

    def submit(self, agent: Callable[..., Any], *args: Any, context: Context | None = None) -> int:
        """Start an attempt as this backend does it; its token."""
        self._token += 1
        self.sink.expect(self._token)
        call: Callable[[], Any] = functools.partial(agent, *args)
        if self.kind == "coroutines" and not asyncio.iscoroutinefunction(agent):
            call = functools.partial(_async, call)
        self.backend.submit(
            AttemptJob(
                self._token,
                f"task-{self._token}",
                call,
                context or copy_context(),
                self.sink,
                process(agent) if self.kind == "processes" else agent,
                args,
            )
        )
        return self._token

    async def run(self, agent: Callable[..., Any], *args: Any) -> Ending:
        """Run an attempt until it is gone."""
        return await self.sink.end_of(self.submit(agent, *args))

    async def submit_waiting(self) -> int:
        """Start an attempt that waits, and wait until it does; its token."""
        agent = agents.wait_on_the_loop if self.kind == "coroutines" else agents.wait
        token = self.submit(agent, self.announced, self.released)
        await self.hear()
        return token

    async def hear(self) -> str:
        """What an agent announces."""
        return await asyncio.to_thread(Path(self.announced).read_text)

    async def release(self, token: int) -> None:
        """Let a waiting agent end: nobody can make a thread, nobody need make a process."""
        if self.kind == "coroutines":
            self.backend.cancel(token, 60)
        else:
            await asyncio.to_thread(Path(self.released).write_text, "released")


async def _async(call: Callable[[], Any]) -> Any:
    return call()


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[World]:
    """A world whose backend has kept its contract when it is left."""
    world = World(kind, folder)
    if isinstance(world.backend, Coroutines):
        await world.backend.open(world.fell.append)
    yield world
    await world.backend.close()
    await asyncio.sleep(0)  # a report too many would be made now
    assert not world.sink.broken
    assert not world.orphans
    assert not world.fell

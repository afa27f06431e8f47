"""Threads and processes as a simulation has them: no real ones, and as stubborn as those.

A blocking agent that is quick is simply called. One that takes its time returns `Blocking`, whose
coroutine stands for what the thread would do: awaiting in it is blocking there.

    def build(ctx):
        return Blocking(_build(ctx))

    async def _build(ctx):
        await asyncio.sleep(60)  # a minute in which nothing can stop the thread
        return "built"
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar

from interlock.execution.backend import AttemptJob, Backend, Caps
from interlock.execution.call_spec import BackendKind
from interlock.execution.callables.coroutines import Coroutines
from interlock.execution.ending import Ending, raised, returned
from interlock.model.outcome import ErrorRecord, State
from interlock.testing.immortal import immortal_list

T = TypeVar("T")

_KILLED: list[Coroutine[Any, Any, Any]] = immortal_list()
"""The work of processes that were killed in the middle: nothing of it may run again."""


class Blocking(Generic[T]):
    """What a blocking agent returns in a simulation: what its thread or process does, and when."""

    def __init__(
        self, work: Coroutine[Any, Any, T], when_killed: Callable[[], None] = lambda: None
    ) -> None:
        self.work = work
        self.when_killed = when_killed
        """Called when the process is killed: the work itself gets no chance to say so."""


class Died(BaseException):
    """For agents in a simulated process to raise: the process dies there, without an answer."""


def simulated_backends(
    loop: asyncio.AbstractEventLoop, coroutines: Coroutines, _orphaned: Callable[[int], None]
) -> Mapping[BackendKind, Backend]:
    """Coroutines as ever; threads and processes that are tasks of the same loop."""
    return {
        BackendKind.LOOP: coroutines,
        BackendKind.THREAD: SimulatedThreads(loop),
        BackendKind.PROCESS: SimulatedProcesses(loop),
        BackendKind.COMMAND: SimulatedProcesses(loop),
    }


class SimulatedThreads:
    """A thread cannot be stopped: whoever is told to goes on until it is done."""

    caps = Caps(kill=False)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, job: AttemptJob) -> None:
        life = _live(_Mortal(job.call))
        task = self._loop.create_task(life, name=f"thread {job.name}", context=job.context)
        task.add_done_callback(partial(_report, job))

    def cancel(self, token: int, grace: float) -> None:
        """Nothing, as with real threads."""

    async def close(self) -> None:
        """Nothing idles here."""


class SimulatedProcesses:
    """A process is told to stop by a CancelledError, and killed when its grace is over."""

    caps = Caps(kill=True)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._alive: dict[int, tuple[_Mortal, asyncio.Task[Ending]]] = {}

    def submit(self, job: AttemptJob) -> None:
        mortal = _Mortal(partial(job.agent, *job.args, **(job.kwargs or {})))
        # Another process: it has none of our context variables.
        task = self._loop.create_task(_live(mortal), name=f"process {job.name}", context=Context())
        self._alive[job.token] = mortal, task
        task.add_done_callback(partial(self._over, job))

    def _over(self, job: AttemptJob, task: asyncio.Task[Ending]) -> None:
        del self._alive[job.token]
        _report(job, task)

    def cancel(self, token: int, grace: float) -> None:
        if token in self._alive:
            self._alive[token][1].cancel()
            self._loop.call_later(grace, self._kill, token)

    def _kill(self, token: int) -> None:
        if token in self._alive:
            mortal, task = self._alive[token]
            mortal.killed = True
            task.cancel()

    async def close(self) -> None:
        """Nothing idles here."""


class _Mortal:
    """Calls an agent and drives its work; once killed it runs no more, not even to clean up."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.killed = False

    def __await__(self) -> Generator[Any, Any, Any]:
        value = self._call()
        work = value.work if isinstance(value, Blocking) else value
        if not inspect.iscoroutine(work):
            return work
        thrown: BaseException | None = None
        while True:
            try:
                waited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as stop:
                return stop.value
            thrown = None
            try:
                yield waited
            except BaseException as error:  # noqa: BLE001 - passed on, as `yield from` does it
                if self.killed:
                    _KILLED.append(work)
                    if isinstance(value, Blocking):
                        value.when_killed()
                    raise Died("the process was killed") from None
                thrown = error


async def _live(mortal: _Mortal) -> Ending:
    try:
        return returned(await mortal)
    except GeneratorExit:
        raise  # nobody will ever run this loop again
    except Died as death:
        return Ending(State.FAILED, None, ErrorRecord("ProcessDied", str(death) or "it died"))
    except BaseException as error:  # noqa: BLE001 - an agent may raise anything; it is its own
        return raised(error)


def _report(job: AttemptJob, task: asyncio.Task[Ending]) -> None:
    """Whatever became of it; a task that a fault strikes before its first step has no ending."""
    if task.cancelled():
        ending = raised(asyncio.CancelledError())
    else:
        error = task.exception()
        ending = task.result() if error is None else raised(error)
    job.sink.ended(job.token, ending)

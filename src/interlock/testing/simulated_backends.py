"""Simulated threads and processes, which can be stopped no more easily than real ones.

A quick blocking agent is simply called. A slow one returns `Blocking` with a coroutine that models
what the thread would do: an await in the coroutine stands for blocking in the thread.

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
    """Returned by a blocking agent in a simulation: models the work of its thread or process."""

    def __init__(
        self, work: Coroutine[Any, Any, T], when_killed: Callable[[], None] = lambda: None
    ) -> None:
        self.work = work
        self.when_killed = when_killed
        """Called when the process is killed, because the work itself does not run again."""


class Died(BaseException):
    """Raised by an agent in a simulated process: the process dies there, without a result."""


def simulated_backends(
    loop: asyncio.AbstractEventLoop, coroutines: Coroutines, _orphaned: Callable[[int], None]
) -> Mapping[BackendKind, Backend]:
    """Coroutines run as always; threads and processes are tasks of the same loop."""
    return {
        BackendKind.LOOP: coroutines,
        BackendKind.THREAD: SimulatedThreads(loop),
        BackendKind.PROCESS: SimulatedProcesses(loop),
        BackendKind.COMMAND: SimulatedProcesses(loop),
    }


class SimulatedThreads:
    """A thread cannot be stopped: its work goes on until it is done."""

    caps = Caps(kill=False)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, job: AttemptJob) -> None:
        running = _run(_KillableWork(job.call))
        task = self._loop.create_task(running, name=f"thread {job.name}", context=job.context)
        task.add_done_callback(partial(_report, job))

    def cancel(self, token: int, grace: float) -> None:
        """Do nothing: a real thread cannot be stopped either."""

    async def close(self) -> None:
        """Do nothing: there are no idle workers."""


class SimulatedProcesses:
    """A process gets a CancelledError when it should stop, and is killed after its grace."""

    caps = Caps(kill=True)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._alive: dict[int, tuple[_KillableWork, asyncio.Task[Ending]]] = {}

    def submit(self, job: AttemptJob) -> None:
        work = _KillableWork(partial(job.agent, *job.args, **(job.kwargs or {})))
        # A process has none of our context variables.
        task = self._loop.create_task(_run(work), name=f"process {job.name}", context=Context())
        self._alive[job.token] = work, task
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
            work, task = self._alive[token]
            work.killed = True
            task.cancel()

    async def close(self) -> None:
        """Do nothing: there are no idle workers."""


class _KillableWork:
    """Calls an agent and drives its work. Once killed, it runs no more, not even to clean up."""

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
            except BaseException as error:  # noqa: BLE001 - passed on, as by `yield from`
                if self.killed:
                    _KILLED.append(work)
                    if isinstance(value, Blocking):
                        value.when_killed()
                    raise Died("the process was killed") from None
                thrown = error


async def _run(work: _KillableWork) -> Ending:
    try:
        return returned(await work)
    except GeneratorExit:
        raise  # The loop has been dropped and will not run again.
    except Died as death:
        return Ending(State.FAILED, None, ErrorRecord("ProcessDied", str(death) or "it died"))
    except BaseException as error:  # noqa: BLE001 - an agent may raise anything; it becomes its ending
        return raised(error)


def _report(job: AttemptJob, task: asyncio.Task[Ending]) -> None:
    """Report the ending; a task that a fault strikes before its first step has none of its own."""
    if task.cancelled():
        ending = raised(asyncio.CancelledError())
    else:
        error = task.exception()
        ending = task.result() if error is None else raised(error)
    job.sink.ended(job.token, ending)

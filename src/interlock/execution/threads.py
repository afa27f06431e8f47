"""Attempts of blocking agents: each has a thread of ours for as long as it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue

from interlock.execution.backend import Caps, Job
from interlock.execution.ending import Ending, raised, returned

_IDLE = 32
"""How many threads may wait for their next job; more than that end with their job."""


class Threads:
    """The backend of blocking agents.

    A thread cannot be ended from outside: `cancel` does nothing here, the agent can ask its context
    whether it was cancelled, and the attempt is gone when the agent returns. The threads are
    daemonic: one that never ends keeps its claims, but not the process.
    """

    caps = Caps(kill=False)

    def __init__(self, loop: asyncio.AbstractEventLoop, on_orphan: Callable[[int], None]) -> None:
        self._loop = loop
        self._on_orphan = on_orphan
        self._idle: list[_Worker] = []
        self._closed = False

    def submit(self, job: Job) -> None:
        worker = self._idle.pop() if self._idle else _Worker(self)
        try:
            worker.take(job)
        except RuntimeError as error:  # the system has no more threads to give
            job.sink.ended(job.token, raised(error))

    def cancel(self, token: int, grace: float) -> None:
        """Nothing: see above."""

    def deliver(self, worker: _Worker, job: Job, ending: Ending) -> None:
        """Hand an ending over to the event loop; called on the thread."""
        try:
            self._loop.call_soon_threadsafe(self._ended, worker, job, ending)
        except RuntimeError:  # the loop was closed while the agent was still running
            self._on_orphan(job.token)
            worker.dismiss()

    def _ended(self, worker: _Worker, job: Job, ending: Ending) -> None:
        if self._closed or len(self._idle) >= _IDLE:
            worker.dismiss()
        else:
            self._idle.append(worker)
        job.sink.ended(job.token, ending)

    async def close(self) -> None:
        self._closed = True
        for worker in self._idle:
            worker.dismiss()
        self._idle.clear()


class _Worker:
    """A thread that runs one job after another."""

    def __init__(self, owner: Threads) -> None:
        self._owner = owner
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._started = False

    def take(self, job: Job) -> None:
        self._thread.name = job.name
        if not self._started:
            self._thread.start()
            self._started = True
        self._jobs.put(job)

    def dismiss(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._owner.deliver(self, job, _run(job))
            del job  # or an idle thread would keep an agent and its arguments alive


def _run(job: Job) -> Ending:
    try:
        return returned(job.context.run(job.call))
    except BaseException as error:  # noqa: BLE001 - an agent may raise anything; it is its own
        return raised(error)

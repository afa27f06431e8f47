"""Attempts of blocking agents: each has one of our threads for as long as it runs."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from interlock.errors import NotRunning
from interlock.execution.backend import AttemptJob, Caps
from interlock.execution.ending import Ending, raised, returned

_IDLE = 32
"""How many threads may wait for a next job; further ones end with their job."""

PATIENCE = 1.0
"""Seconds that a thread waits for the event loop to take a report before it checks whether the run
is over: a loop that is closed drops the calls that it was asked to make."""


class Threads:
    """The backend of blocking agents.

    A thread cannot be ended from outside: `cancel` does nothing here. The agent can ask its context
    whether it was cancelled, and the attempt is gone when the agent returns. The threads are
    daemonic: one that never ends keeps its claims, but does not keep the process alive.
    """

    caps = Caps(kill=False)

    def __init__(self, loop: asyncio.AbstractEventLoop, on_orphan: Callable[[int], None]) -> None:
        self._loop = loop
        self._on_orphan = on_orphan
        self._idle: list[_Worker] = []
        self._closed = False

    def submit(self, job: AttemptJob) -> None:
        worker = self._idle.pop() if self._idle else _Worker(self)
        try:
            worker.take(job)
        except RuntimeError as error:  # the system has no more threads
            job.sink.ended(job.token, raised(error))

    def cancel(self, token: int, grace: float) -> None:
        """Do nothing: a thread cannot be ended."""

    def deliver(self, worker: _Worker, job: AttemptJob, ending: Ending) -> None:
        """Pass an ending to the event loop. Called on the thread."""
        worker.unheard = job.token
        try:
            job.sink.post(self._ended, worker, job, ending)
        except NotRunning:  # the loop was closed while the agent was still running
            self.give_up(worker)

    def give_up(self, worker: _Worker) -> None:
        """Release the claims without the event loop, if the run is over. Called on the thread.

        A loop that was closed, or that no longer runs, must not keep claims that nothing uses.
        """
        token = worker.unheard
        if token is not None and (self._closed or self._loop.is_closed()):
            self._on_orphan(token)
            worker.dismiss()
            worker.unheard = None

    def _ended(self, worker: _Worker, job: AttemptJob, ending: Ending) -> None:
        worker.unheard = None
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
    """A thread that runs one job at a time."""

    def __init__(self, owner: Threads) -> None:
        self._owner = owner
        self._jobs: SimpleQueue[AttemptJob | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._started = False
        self.unheard: int | None = None
        """The token of an attempt whose ending the event loop has not taken yet."""

    def take(self, job: AttemptJob) -> None:
        self._thread.name = job.name
        if not self._started:
            self._thread.start()
            self._started = True
        self._jobs.put(job)

    def dismiss(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        pid = os.getpid()
        while (job := self._next()) is not None:
            ending = _run(job)
            if os.getpid() != pid:
                os._exit(0)  # the agent forked, and its child returned here instead of exiting
            self._owner.deliver(self, job, ending)
            del job  # otherwise an idle thread would keep the agent and its arguments alive

    def _next(self) -> AttemptJob | None:
        while self.unheard is not None:
            try:
                return self._jobs.get(timeout=PATIENCE)
            except Empty:
                self._owner.give_up(self)
        return self._jobs.get()


def _run(job: AttemptJob) -> Ending:
    try:
        return returned(job.context.run(job.call))
    except BaseException as error:  # noqa: BLE001 - whatever an agent raises is its own failure
        return raised(error)

"""The run of a scheduler: kept while the clock runs, renewed when it is old, its state stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from interlock.errors import InterlockError, NotRunning, ShuttingDown
from interlock.patterns.cron.job import task_id_of
from interlock.patterns.cron.job_state import JobStates
from interlock.patterns.cron.restore import cancel_unclaimed
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime

RENEWED_AFTER = 1_000
"""A run knows the ids of all its tasks, a journal prunes and resumes runs as a whole, and a
scheduler has no end: after this many tasks it begins a new run, at a moment at which nothing is
under way. Until there is such a moment, the run keeps no more outcomes than that."""


class CronRun:
    """A Runtime for the clock, and for jobs that are run by hand.

    It is *kept* while the clock runs. Then the job states in memory are the truth; otherwise other
    processes may have changed those on disk.
    """

    def __init__(self, options: Mapping[str, Any], states: JobStates) -> None:
        Runtime(**options)  # impossible options raise here, not with the first call
        self.host = RuntimeHost(lambda: Runtime(**options), self._opened, what="this scheduler")
        self.is_kept = False
        self.ids: set[str] = set()
        """The ids of all tasks of this run, those of earlier processes included."""
        self._states = states
        self._is_durable = options["journal"] is not None
        self._chores: set[asyncio.Task[None]] = set()
        self._is_storing = False
        self._renewal: asyncio.Task[None] | None = None

    def _opened(self, runtime: Runtime) -> None:
        self.ids = {each.task_id for each in runtime.outcomes} | set(runtime.unsubmitted)
        if self._is_durable and not self.is_kept:
            self._states.load(runtime.records("cron"))

    @property
    def is_renewing(self) -> bool:
        """Whether the run is being replaced by a new one."""
        return self._renewal is not None

    @property
    def takes_tasks(self) -> bool:
        """Whether the clock may use the run."""
        return self.is_kept and not self.is_renewing

    def fresh_id(self, runtime: Runtime, job_id: str, which: str) -> str:
        """An id for a firing that this run has not seen."""
        stem = task_id_of(job_id, which)
        while (task_id := runtime.fresh_id(stem)) in self.ids:
            pass
        self.ids.add(task_id)
        return task_id

    async def leave(self, runtime: Runtime) -> None:
        """Stop using the run; after the last caller it is closed."""
        self.host.leave(runtime)
        await self.host.wait_closed()

    async def close(self, settled: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """When every firing has `settled`, store what has changed and close the run."""
        if self._chores:
            await asyncio.wait(self._chores)
        with suppress(NotRunning):
            runtime = self.host.runtime
            if self.is_kept:
                cancel_unclaimed(runtime)
            await settled()
            await self.store(runtime)
        self.is_kept = False
        await self.host.close()

    # -- a new run --------------------------------------------------------------------------

    def renew_if_old(
        self, renewed: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """Begin a new run if this one has seen enough. To be called when nothing is under way."""
        is_alone = self.host.callers == 1  # the clock: other callers may be about to submit
        if len(self.ids) >= RENEWED_AFTER and is_alone and self.takes_tasks:
            with suppress(ShuttingDown):
                renewal = self.host.renew(self.host.runtime, self._finish)
                self._renewal = self._chore(self._renew(renewal, renewed, failed), "cron-renewal")

    async def _finish(self, runtime: Runtime) -> None:
        await self.store(runtime)
        cancel_unclaimed(runtime)

    async def _renew(
        self,
        renewal: Coroutine[Any, Any, Runtime],
        renewed: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        try:
            await renewal
        except ShuttingDown:
            return
        except InterlockError as error:
            failed(error)
        finally:
            self._renewal = None
        renewed()

    # -- the state of the jobs --------------------------------------------------------------

    def store_soon(self) -> None:
        """Have changed job states stored, while the run is there for it."""
        if self._is_durable and self.takes_tasks and not self._is_storing:
            self._chore(self.store(self.host.runtime), "cron-state")
            self._is_storing = True  # last: if the task could not begin, it would never be reset

    async def store(self, runtime: Runtime) -> None:
        """Store what has changed; it is durable when this returns."""
        if self._is_durable:
            try:
                await self._states.store(runtime.records("cron"), runtime.flush)
            except InterlockError as error:
                LOGGER.error("cron_state_not_stored", exc_info=error)
            finally:
                self._is_storing = False

    def _chore(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

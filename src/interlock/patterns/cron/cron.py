"""`CronScheduler`: jobs on a clock."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Literal, Self

from interlock.errors import InterlockError, NotRunning, ShuttingDown, UsageError
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Breaker, Rate, Retry
from interlock.model.task import Task
from interlock.patterns.cron.clock import WallClock
from interlock.patterns.cron.cron_run import RENEWED_AFTER, CronRun
from interlock.patterns.cron.firings import (
    ActiveFirings,
    Firing,
    Trigger,
    cancel_unfinished,
    firing_of,
    record_of,
    rejected,
)
from interlock.patterns.cron.job import CronJob, make_job, task_id_of
from interlock.patterns.cron.job_state import JobStates, moment_text
from interlock.patterns.cron.jobs import JobTable
from interlock.patterns.cron.restore import restore
from interlock.patterns.cron.wanted import WantedJob, wanted_jobs
from interlock.runtime.handle import Handle
from interlock.runtime.limits.options import MaxParallel, slots_of
from interlock.runtime.log import LOGGER
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion

Entries = list[dict[str, Any]]


class CronScheduler:
    """Runs jobs at the times of their schedules; one failure leaves the others alone.

        cron = CronScheduler(journal="state/cron.db")
        cron.add("report", "0 7 * * MON-FRI", report, timezone="Europe/Berlin")
        async with cron:
            await cron.run_forever()

    Jobs are fired only inside the block. Leaving it waits for firings that are under way; leaving
    it by an error cancels them. At most `max_concurrent` run at once. `config` may have a
    `timezone` for jobs that name none; the default is UTC. With a `journal`, a scheduler that was
    stopped or killed continues where it was. The other options are those of Runtime. Methods that
    are not awaited may be called from any thread, such as that of a job that disables itself.
    """

    def __init__(
        self,
        config: Any = None,
        *,
        max_concurrent: MaxParallel = 5,
        journal: str | os.PathLike[str] | None = None,
        workspace: str | os.PathLike[str] = ".",
        capacity: Mapping[str, int] | None = None,
        limits: Mapping[str, Rate | Breaker] | None = None,
        grace: Duration = 30.0,
        ports: Ports | None = None,
    ) -> None:
        given = config.get("timezone") if isinstance(config, Mapping) else None
        self._timezone: str | None = given or getattr(config, "timezone", None)
        options = {
            "max_parallel": slots_of(max_concurrent, "max_concurrent"),
            "workspace": workspace,
            "journal": journal,
            "resume": None if journal is None else "open",
            "capacity": capacity,
            "limits": limits,
            "grace": grace,
            "max_outcomes": RENEWED_AFTER,
            # A firing that was interrupted runs as the program says now.
            "on_changed": "rerun",
            "ports": ports,
        }
        self._states = JobStates()
        self._run = CronRun(options, self._states)
        self._jobs = JobTable(self._states)
        self._firings = ActiveFirings(self._ended)
        self._clock = WallClock((ports or Ports()).wall, self._look)
        self._stopped: asyncio.Future[None] | None = None
        """Set once the clock is started; done when it has stopped."""
        self._is_interrupted = False
        """The run takes no more tasks, as after a signal: firings are left to be resumed."""

    # -- jobs -------------------------------------------------------------------------------

    def add(
        self,
        id: str,
        schedule: str,
        task: Any,
        *,
        timeout: Duration | None = 300.0,
        enabled: bool = True,
        misfire_grace: Duration = 60.0,
        timezone: str | tzinfo | None = None,
        overlap: bool = False,
        retry: Retry | None = None,
    ) -> None:
        """Add a job: `task` is an agent, or a Task with claims, arguments and so on.

        A firing waits for the previous one of the same job, unless `overlap`. What `enable`,
        `disable` or `remove` decided in an earlier process still holds.
        """
        job = make_job(
            id,
            schedule,
            task,
            now=self._clock.now(),
            timeout=timeout,
            enabled=enabled,
            misfire_grace=misfire_grace,
            timezone=self._timezone if timezone is None else timezone,
            overlap=overlap,
            retry=retry,
        )
        self._run.host.call(self._add, job)

    def _add(self, job: CronJob) -> None:
        self._jobs.check_new(job.id)
        if self._run.takes_tasks:
            self.runtime.prepare(job.template)
        self._jobs.add(job)
        if self._clock.is_running:
            self._begin(job)
            self._changed()

    def enable(self, id: str) -> None:
        """Fire a job from now on; also one that an earlier process has removed."""
        self._run.host.call(self._enable, id)

    def _enable(self, id: str) -> None:
        job = self._jobs.find(id, also_removed=True)
        self._jobs.switch(job, "enabled")
        if self._clock.is_running:
            self._begin(job)
        self._changed()

    def disable(self, id: str) -> None:
        """Stop firing a job, and cancel firings that have not started; `trigger` still runs it."""
        self._run.host.call(self._end, id, "disabled")

    def remove(self, id: str) -> None:
        """Remove a job, and cancel its firings that have not started."""
        self._run.host.call(self._end, id, "removed")

    def _end(self, id: str, how: Literal["disabled", "removed"]) -> None:
        job = self._jobs.find(id)
        self._jobs.switch(job, how)
        self._firings.cancel_waiting(id, f"the job was {how}")
        self._changed()

    def list(self) -> Entries:
        """All jobs in the order in which they were added, with their state."""
        return self._run.host.call(self._list)

    def _list(self) -> Entries:
        table = self._jobs
        jobs = [job for job in table.jobs.values() if not table.is_removed(job)]
        return [table.row(job, self._firings.states_of(job.id)) for job in jobs]

    def _changed(self) -> None:
        self._run.store_soon()
        self._clock.wake()

    # -- now --------------------------------------------------------------------------------

    async def trigger(self, id: str) -> dict[str, Any]:
        """Run a job now, regardless of its schedule. It does not overlap its other firings."""
        job = self._jobs.find(id)
        wanted = [WantedJob(id, job.template)]
        return (await self._run_now(wanted, "manual", fail_fast=False))[0]

    async def execute_batch(
        self,
        jobs: Iterable[str | Mapping[str, Any]],
        timeout: Duration | None = 300.0,
        *,
        fail_fast: bool = False,
    ) -> Entries:
        """Run jobs now, together; returns one entry for each, in order.

        A job is the id of one that was added, or a dict: with `job_id` (or `id`) of one that was
        added, or with a `task` of its own. The `timeout`
        applies to each of them, from its start, unless its own is shorter.
        """
        wanted = wanted_jobs(jobs, timeout, self._jobs)
        return await self._run_now(wanted, "batch", fail_fast=fail_fast) if wanted else []

    async def _run_now(
        self, wanted: Sequence[WantedJob], trigger: Trigger, *, fail_fast: bool
    ) -> Entries:
        """Cancelling it cancels the work, and waits until everything is released."""
        runtime = await self._run.host.enter()
        which = f"{trigger}-{moment_text(self._clock.now())}"
        handles: list[Handle[Any]] = []
        try:
            ids = [self._run.fresh_id(runtime, each.job_id, which) for each in wanted]
            firings = [
                Firing(each.job_id, task_id, trigger)
                for each, task_id in zip(wanted, ids, strict=True)
            ]
            handles = runtime.submit_all(
                [each.task.renamed(task_id) for each, task_id in zip(wanted, ids, strict=True)],
                fail_fast=fail_fast,
            )
            for firing, handle in zip(firings, handles, strict=True):
                self._firings.follow(firing, handle)
            outcomes = [await handle for handle in handles]
        finally:
            cancel_unfinished(handles, "its caller no longer waits for it")
            await shielded_to_completion(self._leave_now(runtime, handles))
        return [
            {**record_of(firing, outcome), "output": outcome.result}
            for firing, outcome in zip(firings, outcomes, strict=True)
        ]

    async def _leave_now(self, runtime: Runtime, handles: Sequence[Handle[Any]]) -> None:
        if not self._run.is_kept:  # otherwise the clock stores the records
            for handle in handles:
                with contextlib.suppress(InterlockError):
                    await handle
            await self._run.store(runtime)
        await self._run.leave(runtime)
        self._renew_if_idle()

    # -- the run ----------------------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The Runtime, inside the block or while a job is run by hand.

        A firing is `cron-ID@TIME` there, with the time at which it was due; `cron-ID@manual-TIME`
        or `cron-ID@batch-TIME` if it was run by hand.
        """
        return self._run.host.runtime

    async def __aenter__(self) -> Self:
        if self._stopped is not None:
            raise NotRunning("a scheduler is entered once: make a new one")
        runtime = await self._run.host.enter()
        self._run.is_kept = True
        self._stopped = asyncio.get_running_loop().create_future()
        try:
            for job in self._jobs.jobs.values():
                runtime.prepare(job.template)
            restore(runtime, self._states, self._clock.now())
            for job in list(self._jobs.jobs.values()):
                self._begin(job)
            self._clock.start()
            self._run.store_soon()
        except BaseException:
            await self._leave(cancel=True)
            raise
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._leave(cancel=error is not None)

    async def run_forever(self) -> None:
        """Wait until the scheduler is shut down. Raises what keeps it from firing jobs."""
        if self._stopped is None:
            raise NotRunning("enter the scheduler first: `async with cron:`")
        await asyncio.shield(self._stopped)

    async def shutdown(self, timeout: Duration = 30.0) -> None:
        """Fire no more, cancel what has not started, let running firings finish, then stop them."""
        limit = seconds(timeout, "timeout")
        self._run.host.check_loop()
        self._stop()
        self._run.host.refuse()
        try:
            if self._firings:
                await self.runtime.shutdown(limit)
        finally:
            await shielded_to_completion(self._run.close(self._firings.settled))

    async def flush(self) -> None:
        """Wait until everything decided and fired so far is durable."""
        runtime = await self._run.host.enter()
        try:
            await self._run.store(runtime)
        finally:
            await shielded_to_completion(self._run.leave(runtime))

    async def _leave(self, *, cancel: bool) -> None:
        self._stop()
        self._run.host.refuse()
        try:
            if not cancel or self._is_interrupted:
                await self._firings.settled()
        finally:
            self._firings.cancel_all("the scheduler was left")
            await shielded_to_completion(self._run.close(self._firings.settled))

    def _stop(self, error: BaseException | None = None) -> None:
        self._clock.stop()
        self._jobs.stop()
        if self._stopped is not None and not self._stopped.done():
            if error is None:
                self._stopped.set_result(None)
            else:
                self._stopped.set_exception(error)
                self._stopped.exception()  # retrieved: without a waiter it has been logged

    # -- the clock --------------------------------------------------------------------------

    def _begin(self, job: CronJob) -> None:
        """From now on the clock counts for this job; its interrupted firings are resumed."""
        self._jobs.begin(job, self._clock.now())
        for task_id in self.runtime.unsubmitted if self._run.takes_tasks else ():
            firing = firing_of(task_id)
            if firing is not None and firing.job_id == job.id:
                handle = self.runtime.submit(job.task(task_id))
                self._firings.follow(firing, handle)
                if not self._jobs.is_enabled(job):
                    handle.cancel("the job is not enabled")

    def _look(self) -> float | None:
        """Fire what is due; returns when the next job will be."""
        if self._run.is_renewing:
            return None
        try:
            self._fire(self.runtime, self._clock.now())
        except (ShuttingDown, NotRunning) as error:
            self._is_interrupted = True
            self._stop(error)
        except Exception as error:  # noqa: BLE001 - the clock must not stop silently
            self._failed(error)
        return self._jobs.next_due()

    def _fire(self, runtime: Runtime, now: float) -> None:
        firings: list[tuple[Firing, Task]] = []
        self._jobs.restart_set_back(now)
        due = self._jobs.due(now)
        for job in due:
            due_at = self._jobs.take_due(job, now).due
            if due_at is None:
                continue
            if not job.overlap and self._firings.has_waiting(job.id):
                self._states.of(job.id).merged += 1
                continue
            which = moment_text(due_at)
            was_fired = task_id_of(job.id, which) in self._run.ids
            if was_fired and not self._states.of(job.id).may_repeat(due_at):
                continue
            task_id = self._run.fresh_id(runtime, job.id, which)
            firings.append((Firing(job.id, task_id, "schedule", due_at), job.task(task_id)))
        if firings:
            self._submit(runtime, firings, now)
        if due:
            self._run.store_soon()

    def _submit(self, runtime: Runtime, firings: Sequence[tuple[Firing, Task]], now: float) -> None:
        try:
            handles = runtime.submit_all([task for _, task in firings])
        except (ShuttingDown, NotRunning):
            raise
        except UsageError as error:  # one job that cannot run must not stop the others
            if len(firings) > 1:
                for each in firings:
                    self._submit(runtime, [each], now)
                return
            firing = firings[0][0]
            LOGGER.error("cron_refused", exc_info=error, extra={"job": firing.job_id})
            self._ended(rejected(firing, error, now))
            return
        for (firing, _), handle in zip(firings, handles, strict=True):
            self._firings.follow(firing, handle)

    def _ended(self, record: dict[str, Any]) -> None:
        job_id = record["job_id"]
        if job_id in self._jobs.jobs:
            self._states.changed(job_id).add_ended(record)
            self._run.store_soon()
        self._renew_if_idle()

    def _renew_if_idle(self) -> None:
        if not self._firings:
            self._run.renew_if_old(self._changed, self._failed)

    def _failed(self, error: Exception) -> None:
        LOGGER.error("cron_stopped", exc_info=error)
        self._stop(error)

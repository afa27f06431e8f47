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
from interlock.patterns.cron.batch import Wanted, wanted_jobs
from interlock.patterns.cron.book import Book, moment
from interlock.patterns.cron.clock import Clock
from interlock.patterns.cron.cron_house import RENEWED_AFTER, House
from interlock.patterns.cron.firings import Batch, Firing, Firings, Trigger, firing_of, refused
from interlock.patterns.cron.job import Job, made, name_of
from interlock.patterns.cron.recall import recall
from interlock.patterns.cron.roster import Roster
from interlock.runtime.handle import Handle
from interlock.runtime.limits.options import MaxParallel, slots_of
from interlock.runtime.log import LOGGER
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion

Entries = list[dict[str, Any]]


class CronScheduler:
    """Runs jobs at the times their schedules name; one failure leaves the others alone.

        cron = CronScheduler(journal="state/cron.db")
        cron.add("report", "0 7 * * MON-FRI", report, timezone="Europe/Berlin")
        async with cron:
            await cron.run_forever()

    Jobs are fired only inside the block. Leaving it waits for what is under way, leaving it by an
    error cancels that. At most `max_concurrent` run at once. `config` may have a `timezone` for
    jobs that bring none; otherwise they go by UTC. With a `journal`, a scheduler that was stopped
    or killed goes on where it was. The other options are those of Runtime. What is not awaited can
    be called from every thread, such as that of a job which disables itself.
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
            # A program that was changed since a firing was cut off runs it as it is now.
            "on_changed": "rerun",
            "ports": ports,
        }
        self._book = Book()
        self._house = House(options, self._book)
        self._roster = Roster(self._book)
        self._firings = Firings(self._ended)
        self._clock = Clock((ports or Ports()).wall, self._look)
        self._over: asyncio.Future[None] | None = None
        """Done when the clock has stopped; there once it was started."""
        self._interrupted = False
        """The run takes no more, as after a signal: what is under way is left to be taken up."""

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

        A firing waits for the one before of the same job, unless `overlap`. What `enable`,
        `disable` or `remove` said of a job in an earlier life still holds.
        """
        job = made(
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
        self._house.call(self._add, job)

    def _add(self, job: Job) -> None:
        self._roster.check_new(job.id)
        if self._house.takes_tasks:
            self.runtime.prepare(job.template)
        self._roster.add(job)
        if self._clock.is_running:
            self._begin(job)
            self._changed()

    def enable(self, id: str) -> None:
        """Let a job be fired from now on; also one that an earlier life has removed."""
        self._house.call(self._enable, id)

    def _enable(self, id: str) -> None:
        job = self._roster.find(id, also_removed=True)
        self._roster.switch(job, "enabled")
        if self._clock.is_running:
            self._begin(job)
        self._changed()

    def disable(self, id: str) -> None:
        """Fire a job no more, and call off what has not started; `trigger` still runs it."""
        self._house.call(self._end, id, "disabled")

    def remove(self, id: str) -> None:
        """Forget a job, and call off what has not started."""
        self._house.call(self._end, id, "removed")

    def _end(self, id: str, how: Literal["disabled", "removed"]) -> None:
        job = self._roster.find(id)
        self._roster.switch(job, how)
        self._firings.call_off(id, f"the job was {how}")
        self._changed()

    def list(self) -> Entries:
        """All jobs, in the order in which they were added, with what is known of them."""
        return self._house.call(self._list)

    def _list(self) -> Entries:
        roster = self._roster
        jobs = [job for job in roster.jobs.values() if not roster.is_removed(job)]
        return [roster.row(job, self._firings.of(job.id)) for job in jobs]

    def _changed(self) -> None:
        self._house.write_soon()
        self._clock.wake()

    # -- now --------------------------------------------------------------------------------

    async def trigger(self, id: str) -> dict[str, Any]:
        """Run a job now, whatever its schedule. It waits for its own firings, as they do for it."""
        job = self._roster.find(id)
        return (await self._run([Wanted(id, job.template)], "manual", fail_fast=False))[0]

    async def execute_batch(
        self,
        jobs: Iterable[str | Mapping[str, Any]],
        timeout: Duration | None = 300.0,
        *,
        fail_fast: bool = False,
    ) -> Entries:
        """Run jobs now, together; one entry for each, in their order.

        A job is the id of one that was added, or a dict with `job_id` and `task`. The `timeout` is
        for each of them, from its start, unless its own is shorter.
        """
        wanted = wanted_jobs(jobs, timeout, self._roster)
        return await self._run(wanted, "batch", fail_fast=fail_fast) if wanted else []

    async def _run(self, wanted: Sequence[Wanted], trigger: Trigger, *, fail_fast: bool) -> Entries:
        """Cancelling it cancels the work, and waits until all is released."""
        runtime = await self._house.enter()
        which = f"{trigger}-{moment(self._clock.now())}"
        names = [self._house.fresh(each.job_id, which) for each in wanted]
        firings = [
            Firing(each.job_id, name, trigger) for each, name in zip(wanted, names, strict=True)
        ]
        batch = Batch(firings, fail_fast, {})
        handles: Sequence[Handle[Any]] = ()
        try:
            handles = runtime.submit_all(
                [each.task.renamed(name) for each, name in zip(wanted, names, strict=True)]
            )
            for firing, handle in zip(firings, handles, strict=True):
                self._firings.follow(firing, handle, batch)
            for handle in handles:
                await handle
        finally:
            self._firings.cancel("nobody waits for it any more", firings)
            await shielded_to_completion(self._depart(runtime, handles))
        return [batch.told[name] for name in names]

    async def _depart(self, runtime: Runtime, handles: Sequence[Handle[Any]]) -> None:
        if not self._house.is_kept:  # then nobody else would write it down
            for handle in handles:
                with contextlib.suppress(InterlockError):
                    await handle
            await self._house.write(runtime)
        await self._house.leave()
        self._renew_if_quiet()

    # -- the run ----------------------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The Runtime, inside the block or while something is being run.

        A firing is `cron-ID@TIME` there, with the time for which it was due; `cron-ID@manual-TIME`
        or `cron-ID@batch-TIME` was run by hand.
        """
        return self._house.runtime

    async def __aenter__(self) -> Self:
        if self._over is not None:
            raise NotRunning("a scheduler is entered once: make a new one")
        runtime = await self._house.enter()
        self._house.is_kept = True
        self._over = asyncio.get_running_loop().create_future()
        try:
            for job in self._roster.jobs.values():
                runtime.prepare(job.template)
            recall(runtime, self._book, self._clock.now())
            for job in list(self._roster.jobs.values()):
                self._begin(job)
            self._clock.start()
            self._house.write_soon()
        except BaseException:
            await self._leave(cancel=True)
            raise
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._leave(cancel=error is not None)

    async def run_forever(self) -> None:
        """Wait until somebody shuts it down. Raises what keeps it from firing jobs."""
        if self._over is None:
            raise NotRunning("enter the scheduler first: `async with cron:`")
        await asyncio.shield(self._over)

    async def shutdown(self, timeout: Duration = 30.0) -> None:
        """Fire no more, call off what has not started, let what runs finish, then stop it."""
        limit = seconds(timeout, "timeout")
        self._house.check_loop()
        self._stop()
        self._house.refuse()
        try:
            if self._firings:
                await self.runtime.shutdown(limit)
        finally:
            await shielded_to_completion(self._house.close(self._firings.quiet))

    async def flush(self) -> None:
        """Wait until all that was said and fired so far is durable."""
        runtime = await self._house.enter()
        try:
            await self._house.write(runtime)
        finally:
            await shielded_to_completion(self._house.leave())

    async def _leave(self, *, cancel: bool) -> None:
        self._stop()
        self._house.refuse()
        try:
            if not cancel or self._interrupted:
                await self._firings.quiet()
        finally:
            self._firings.cancel("the scheduler was left")
            await shielded_to_completion(self._house.close(self._firings.quiet))

    def _stop(self, trouble: BaseException | None = None) -> None:
        self._clock.stop()
        self._roster.stop()
        if self._over is not None and not self._over.done():
            if trouble is None:
                self._over.set_result(None)
            else:
                self._over.set_exception(trouble)
                self._over.exception()  # for whoever waits; if nobody does, it was logged

    # -- the clock --------------------------------------------------------------------------

    def _begin(self, job: Job) -> None:
        """From now on the clock counts for this job; what was cut off is brought back."""
        self._roster.begin(job, self._clock.now())
        for name in self.runtime.unsubmitted if self._house.takes_tasks else ():
            firing = firing_of(name)
            if firing is not None and firing.job_id == job.id:
                handle = self.runtime.submit(job.task(name))
                self._firings.follow(firing, handle)
                if not self._roster.is_enabled(job):
                    handle.cancel("the job is not enabled")

    def _look(self) -> float | None:
        """Fire what is due; when the next one will be."""
        if self._house.is_renewing:
            return None
        try:
            self._fire(self.runtime, self._clock.now())
        except (ShuttingDown, NotRunning) as error:
            self._interrupted = True
            self._stop(error)
        except Exception as error:  # noqa: BLE001 - a clock that stops without a word is worst
            self._failed(error)
        return self._roster.next_due()

    def _fire(self, runtime: Runtime, now: float) -> None:
        firings: list[tuple[Firing, Task]] = []
        self._roster.look_back(now)
        due = self._roster.due(now)
        for job in due:
            debt = self._roster.collect(job, now)
            if debt.due is None:
                continue
            if not job.overlap and self._firings.one_waits(job.id):
                self._book.page(job.id).merged += 1
                continue
            which = moment(debt.due)
            name = name_of(job.id, which)
            if name in self._house.names:
                if not self._book.page(job.id).may_come_again(debt.due):
                    continue
                name = self._house.fresh(job.id, which)
            firings.append((Firing(job.id, name, "schedule", debt.due), job.task(name)))
        if firings:
            self._submit(runtime, firings, now)
        if due:
            self._house.write_soon()

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
            job_id = firings[0][0].job_id
            LOGGER.error("cron_refused", exc_info=error, extra={"job": job_id})
            self._ended(refused(firings[0][0], error, now))
            return
        for (firing, _), handle in zip(firings, handles, strict=True):
            self._house.names.add(firing.name)
            self._firings.follow(firing, handle)

    def _ended(self, record: dict[str, Any]) -> None:
        job_id = record["job_id"]
        if job_id in self._roster.jobs:
            self._book.page(job_id).ended(record)
            self._book.changed(job_id)
            self._house.write_soon()
        self._renew_if_quiet()

    def _renew_if_quiet(self) -> None:
        if not self._firings:
            self._house.renew_if_old(self._changed, self._failed)

    def _failed(self, error: Exception) -> None:
        LOGGER.error("cron_stopped", exc_info=error)
        self._stop(error)

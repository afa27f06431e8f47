"""The jobs of a scheduler: which there are, which are enabled, and when each is due."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from interlock.errors import DuplicateId, UnknownTask
from interlock.model.outcome import State
from interlock.patterns.cron.book import Book, Switched
from interlock.patterns.cron.clock import SET_BACK
from interlock.patterns.cron.job import Job
from interlock.patterns.cron.owed import Owed, owed
from interlock.patterns.cron.schedule import Schedule
from interlock.runtime.log import LOGGER


class Roster:
    """Jobs as they were added, and what the book says of them."""

    def __init__(self, book: Book) -> None:
        self.jobs: dict[str, Job] = {}
        self._book = book
        self._removed: set[str] = set()
        """Those removed in this life: whoever adds them again means it."""
        self._schedules: dict[str, Schedule] = {}
        self._next: dict[str, float] = {}
        """When those that are enabled are due, while the clock runs."""

    def check_new(self, job_id: str) -> None:
        """Raise if there is a job of that name."""
        if job_id in self.jobs:
            raise DuplicateId(f"there is a job {job_id!r} already; remove it first")

    def add(self, job: Job) -> None:
        """One more."""
        if job.id in self._removed:
            self._removed.remove(job.id)
            self._book.switch(job.id, None)
        self.jobs[job.id] = job

    def find(self, job_id: str, *, also_removed: bool = False) -> Job:
        """The job of that name; one that an earlier life removed only if it is asked for."""
        job = self.jobs.get(job_id) if isinstance(job_id, str) else None
        if job is None:
            raise UnknownTask(f"there is no job {job_id!r}")
        if self.is_removed(job) and not also_removed:
            raise UnknownTask(f"job {job_id!r} was removed; enable({job_id!r}) brings it back")
        return job

    def is_removed(self, job: Job) -> bool:
        """Whether it was added again although an earlier life removed it."""
        return self._book.page(job.id).switched == "removed"

    def is_enabled(self, job: Job) -> bool:
        """What was decided about it; or what `add` says, if nothing was."""
        switched = self._book.page(job.id).switched
        return job.enabled if switched is None else switched == "enabled"

    def switch(self, job: Job, to: Switched) -> None:
        """Decide about a job, for good. Nothing is owed for the time without it."""
        if to != "enabled" or not self.is_enabled(job):
            self._book.page(job.id).since = None
        self._book.switch(job.id, to)
        if to != "enabled":
            self._next.pop(job.id, None)
        if to == "removed":
            self._removed.add(job.id)
            del self.jobs[job.id]

    # -- the clock --------------------------------------------------------------------------

    def begin(self, job: Job, now: float) -> None:
        """From now on the clock counts for this job."""
        page = self._book.page(job.id)
        plan = f"{job.text} in {job.timezone}"
        if page.plan != plan:
            page.plan, page.anchor, page.since = plan, now, None
        if page.anchor > now + SET_BACK:
            page.anchor = now
        if page.since is not None and page.since > now + SET_BACK:
            back = page.begin_anew(page.since, now)
            LOGGER.warning("cron_clock_set_back", extra={"job": job.id, **back})
        enabled = self.is_enabled(job)
        if not enabled:
            page.since = None
        elif page.since is None:
            page.since = now
        if page.since is not None:
            schedule = self._schedules[job.id] = job.schedule(page.anchor)
            self._set_next(job, schedule.after(page.since))
        self._book.changed(job.id)

    def look_back(self, now: float) -> None:
        """Begin anew with the jobs for which it is much earlier than it was."""
        for job_id in list(self._next):
            since = self._book.page(job_id).since
            if since is not None and since > now + SET_BACK:
                self.begin(self.jobs[job_id], now)

    def stop(self) -> None:
        """Nothing is due any more."""
        self._next.clear()

    def due(self, now: float) -> list[Job]:
        """The jobs that are due, in the order in which they were added."""
        return [self.jobs[job_id] for job_id, due in self._next.items() if due <= now]

    def next_due(self) -> float | None:
        """When the next job is due."""
        return min(self._next.values(), default=None)

    def collect(self, job: Job, now: float) -> Owed:
        """What a job owes; from then on it owes nothing for the time up to now."""
        page = self._book.page(job.id)
        assert page.since is not None
        debt = owed(self._schedules[job.id], page.since, now, job.grace)
        page.merged += debt.merged
        if debt.missed is not None:
            page.miss(debt.missed)
            LOGGER.warning("cron_missed", extra={"job": job.id, **page.misses[-1]})
        page.since = now
        self._set_next(job, debt.following)
        self._book.changed(job.id)
        return debt

    def _set_next(self, job: Job, due: float | None) -> None:
        if due is None:
            self._next.pop(job.id, None)
        else:
            self._next[job.id] = due

    # -- looking ----------------------------------------------------------------------------

    def row(self, job: Job, under_way: dict[str, State]) -> dict[str, Any]:
        """What `list()` tells of a job."""
        page = self._book.page(job.id)
        due = self._next.get(job.id)
        return {
            "job_id": job.id,
            "schedule": job.text,
            "timezone": job.timezone,
            "enabled": self.is_enabled(job),
            "next_run": None if due is None else datetime.fromtimestamp(due, UTC),
            "under_way": {name: str(state) for name, state in under_way.items()},
            "last_scheduled": page.last_scheduled,
            "last_manual": page.last_manual,
            "runs": page.runs,
            "merged": page.merged,
            "missed": page.missed,
            "set_back": page.set_back,
            "firings": [*page.firings],
            "misses": [*page.misses],
        }

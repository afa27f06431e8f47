"""The jobs of a scheduler: which there are, which are enabled, and when each is due."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from interlock.errors import DuplicateId, UnknownTask
from interlock.model.outcome import State
from interlock.patterns.cron.clock import SET_BACK
from interlock.patterns.cron.due import DueTimes, due_times
from interlock.patterns.cron.job import CronJob
from interlock.patterns.cron.job_state import JobStates, Switched
from interlock.patterns.cron.schedule import Schedule
from interlock.runtime.log import LOGGER


class JobTable:
    """The jobs as they were added, together with their states."""

    def __init__(self, states: JobStates) -> None:
        self.jobs: dict[str, CronJob] = {}
        self._states = states
        self._removed: set[str] = set()
        """Jobs that this process has removed: adding one of them again brings it back."""
        self._schedules: dict[str, Schedule] = {}
        self._next: dict[str, float] = {}
        """When the enabled jobs are due, while the clock runs."""

    def check_new(self, job_id: str) -> None:
        """Raise if there is a job of that id."""
        if job_id in self.jobs:
            raise DuplicateId(f"there is a job {job_id!r} already; remove it first")

    def add(self, job: CronJob) -> None:
        """Add a job."""
        if job.id in self._removed:
            self._removed.remove(job.id)
            self._states.changed(job.id).switched = None
        self.jobs[job.id] = job

    def find(self, job_id: str, *, also_removed: bool = False) -> CronJob:
        """The job of that id; with `also_removed`, one that an earlier process removed as well."""
        job = self.jobs.get(job_id) if isinstance(job_id, str) else None
        if job is None:
            raise UnknownTask(f"there is no job {job_id!r}")
        if self.is_removed(job) and not also_removed:
            raise UnknownTask(f"job {job_id!r} was removed; enable({job_id!r}) brings it back")
        return job

    def is_removed(self, job: CronJob) -> bool:
        """Whether it was added although an earlier process had removed it."""
        return self._states.of(job.id).switched == "removed"

    def is_enabled(self, job: CronJob) -> bool:
        """What was decided about it; or what `add` says, if nothing was."""
        switched = self._states.of(job.id).switched
        return job.enabled if switched is None else switched == "enabled"

    def switch(self, job: CronJob, to: Switched) -> None:
        """Decide about a job, durably. Nothing is due for the time in which it was off."""
        state = self._states.changed(job.id)
        if to != "enabled" or not self.is_enabled(job):
            state.since = None
        state.switched = to
        if to != "enabled":
            self._next.pop(job.id, None)
        if to == "removed":
            self._removed.add(job.id)
            del self.jobs[job.id]

    # -- the clock --------------------------------------------------------------------------

    def begin(self, job: CronJob, now: float) -> None:
        """From now on the clock counts for this job."""
        state = self._states.changed(job.id)
        plan = f"{job.text} in {job.timezone}"
        if state.plan != plan:
            state.plan, state.anchor, state.since = plan, now, None
        if state.anchor > now + SET_BACK:
            state.anchor = now
        if state.since is not None and state.since > now + SET_BACK:
            back = state.restart(state.since, now)
            LOGGER.warning("cron_clock_set_back", extra={"job": job.id, **back})
        if not self.is_enabled(job):
            state.since = None
        elif state.since is None:
            state.since = now
        if state.since is not None:
            schedule = self._schedules[job.id] = job.schedule(state.anchor)
            self._set_next(job, schedule.after(state.since))

    def restart_set_back(self, now: float) -> None:
        """Restart the jobs for which it is now much earlier than it was."""
        for job_id in list(self._next):
            since = self._states.of(job_id).since
            if since is not None and since > now + SET_BACK:
                self.begin(self.jobs[job_id], now)

    def stop(self) -> None:
        """Nothing is due any more."""
        self._next.clear()

    def due(self, now: float) -> list[CronJob]:
        """The jobs that are due, in the order in which they were added."""
        return [self.jobs[job_id] for job_id, due in self._next.items() if due <= now]

    def next_due(self) -> float | None:
        """When the next job is due."""
        return min(self._next.values(), default=None)

    def take_due(self, job: CronJob, now: float) -> DueTimes:
        """What fell due for a job; it is accounted for up to now."""
        state = self._states.changed(job.id)
        assert state.since is not None
        times = due_times(self._schedules[job.id], state.since, now, job.grace)
        state.merged += times.merged
        if times.missed is not None:
            state.add_missed(times.missed)
            LOGGER.warning("cron_missed", extra={"job": job.id, **state.misses[-1]})
        state.since = now
        self._set_next(job, times.following)
        return times

    def _set_next(self, job: CronJob, due: float | None) -> None:
        if due is None:
            self._next.pop(job.id, None)
        else:
            self._next[job.id] = due

    # -- looking ----------------------------------------------------------------------------

    def row(self, job: CronJob, under_way: dict[str, State]) -> dict[str, Any]:
        """What `list()` says about a job."""
        state = self._states.of(job.id)
        due = self._next.get(job.id)
        return {
            "job_id": job.id,
            "schedule": job.text,
            "timezone": job.timezone,
            "enabled": self.is_enabled(job),
            "next_run": None if due is None else datetime.fromtimestamp(due, UTC),
            "under_way": {task_id: str(each) for task_id, each in under_way.items()},
            "last_scheduled": state.last_scheduled,
            "last_manual": state.last_manual,
            "runs": state.runs,
            "merged": state.merged,
            "missed": state.missed,
            "set_back": state.set_back,
            "firings": [*state.firings],
            "misses": [*state.misses],
        }

"""A job as it was added: what to do, when, and how."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from interlock.errors import BlankId, InvalidOption
from interlock.model.claim import uses
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Retry
from interlock.model.task import Task
from interlock.patterns.cron.schedule import Schedule, read_schedule
from interlock.patterns.cron.zone import zone_of
from interlock.runtime.submission.preparation import check_agent

PREFIX = "cron-"


@dataclass(frozen=True)
class CronJob:
    """What `add` was given."""

    id: str
    text: str
    """The schedule as it was written."""
    zone: tzinfo
    template: Task
    """The task of every firing, except for its id."""
    grace: float
    enabled: bool
    overlap: bool

    @property
    def timezone(self) -> str:
        return "UTC" if self.zone is UTC else str(self.zone)

    def schedule(self, anchor: float) -> Schedule:
        """When it is due; intervals are counted from the anchor."""
        return read_schedule(self.text, self.zone, anchor, f"job {self.id!r}")

    def task(self, task_id: str) -> Task:
        """The task of one firing."""
        return self.template.renamed(task_id)


def make_job(
    job_id: str,
    schedule: str,
    task: Any,
    *,
    now: float,
    timeout: Duration | None,
    enabled: bool,
    misfire_grace: Duration,
    timezone: str | tzinfo | None,
    overlap: bool,
    retry: Retry | None,
) -> CronJob:
    """A job; raises for what is wrong with it, and names it."""
    if not isinstance(job_id, str) or not job_id.strip():
        raise BlankId(f"a job needs an id, non-blank text, not {job_id!r}")
    what = f"job {job_id!r}"
    for name, switch in {"enabled": enabled, "overlap": overlap}.items():
        if not isinstance(switch, bool):  # "no" would count as yes
            raise InvalidOption(f"{what}: {name} is {switch!r}; it must be True or False")
    job = CronJob(
        job_id,
        schedule,
        zone_of(timezone, what),
        template(job_id, task, timeout, retry, overlap=overlap),
        seconds(misfire_grace, f"{what}: misfire_grace"),
        enabled,
        overlap,
    )
    job.schedule(now)  # raises if it cannot be read
    return job


def template(
    job_id: str, task: Any, timeout: Duration | None, retry: Retry | None, *, overlap: bool
) -> Task:
    """The task of all firings of a job, from an agent or a whole Task."""
    what = f"job {job_id!r}"
    if isinstance(task, str):
        raise InvalidOption(
            f"{what}: the task is the text {task!r}; give an agent, or Task(id, agent, prompt=...)"
        )
    most = None if timeout is None else seconds(timeout, f"{what}: timeout")
    given = task if isinstance(task, Task) else Task(job_id, task)
    if given.key is not None or given.after:
        raise InvalidOption(
            f"{what}: its task has a {'key' if given.key is not None else 'dependency'}, which "
            "belongs to a task that runs once; a job runs again and again"
        )
    # One firing at a time is an ordinary claim, so that `why` can explain the wait.
    own = () if overlap else (uses(f"cron:{job_id}", exclusive=True),)
    pattern = given.replace(
        id=job_id,
        timeout=most if given.timeout is None else given.timeout,
        retry=given.retry if retry is None else retry,
        claims=given.claims + own,
    )
    check_agent(pattern)
    return pattern


def task_id_of(job_id: str, which: str) -> str:
    """The id of the task of a firing: `cron-backup@2026-03-29T01:00:00Z`."""
    return f"{PREFIX}{job_id}@{which}"


def job_of_task(task_id: str) -> tuple[str, str] | None:
    """The job and the firing that a task belongs to; None if it is no firing."""
    job_id, at, which = task_id.removeprefix(PREFIX).rpartition("@")
    return (job_id, which) if at and task_id.startswith(PREFIX) else None

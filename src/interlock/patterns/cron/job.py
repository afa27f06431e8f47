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
class Job:
    """What `add` was given."""

    id: str
    text: str
    """The schedule as it was written."""
    zone: tzinfo
    template: Task
    """What every firing is, but for its id."""
    grace: float
    enabled: bool
    overlap: bool

    @property
    def timezone(self) -> str:
        return "UTC" if self.zone is UTC else str(self.zone)

    def schedule(self, anchor: float) -> Schedule:
        """When it is due; intervals are counted from the anchor."""
        return read_schedule(self.text, self.zone, anchor, f"job {self.id!r}")

    def task(self, name: str) -> Task:
        """The task of one firing."""
        return self.template.renamed(name)


def made(
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
) -> Job:
    """A job, if all of it is right; the error names it."""
    if not isinstance(job_id, str) or not job_id.strip():
        raise BlankId(f"a job needs an id, text that is not blank, not {job_id!r}")
    what = f"job {job_id!r}"
    for name, switch in {"enabled": enabled, "overlap": overlap}.items():
        if not isinstance(switch, bool):  # "no" would count as yes
            raise InvalidOption(f"{what}: {name} is {switch!r}; it is True or False")
    job = Job(
        job_id,
        schedule,
        zone_of(timezone, what),
        template(job_id, task, timeout, retry, overlap=overlap),
        seconds(misfire_grace, f"{what}: misfire_grace"),
        enabled,
        overlap,
    )
    job.schedule(now)  # only to see that it can be read
    return job


def template(
    job_id: str, task: Any, timeout: Duration | None, retry: Retry | None, *, overlap: bool
) -> Task:
    """An agent, or a whole Task, as the pattern of all firings of a job."""
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
            "belongs to one piece of work; a job runs again and again"
        )
    # One firing at a time is a claim like any other, so that `why` can tell who waits for whom.
    own = () if overlap else (uses(f"cron:{job_id}", exclusive=True),)
    pattern = given.replace(
        id=job_id,
        timeout=most if given.timeout is None else given.timeout,
        retry=given.retry if retry is None else retry,
        claims=given.claims + own,
    )
    check_agent(pattern)
    return pattern


def name_of(job_id: str, which: str) -> str:
    """The id of the task of a firing: `cron-backup@2026-03-29T01:00:00Z`."""
    return f"{PREFIX}{job_id}@{which}"


def job_of(name: str) -> tuple[str, str] | None:
    """The job and the firing that a task belongs to; None if it is somebody else's."""
    job_id, at, which = name.removeprefix(PREFIX).rpartition("@")
    return (job_id, which) if at and name.startswith(PREFIX) else None

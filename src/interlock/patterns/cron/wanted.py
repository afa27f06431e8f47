"""Jobs to run now: those of a scheduler, or others that come with the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from interlock.errors import BlankId, DuplicateId, InvalidOption
from interlock.model.duration import Duration, seconds
from interlock.model.task import Task
from interlock.patterns.cron.job import template
from interlock.patterns.cron.jobs import JobTable

_OPTIONS = {"job_id", "id", "task", "timeout", "retry"}


class WantedJob(NamedTuple):
    """A job to run once."""

    job_id: str
    task: Task


def wanted_jobs(
    jobs: Iterable[str | Mapping[str, Any]], timeout: Duration | None, table: JobTable
) -> list[WantedJob]:
    """All jobs of a batch; raises for what is wrong with one of them, and names it."""
    limit = None if timeout is None else seconds(timeout, "timeout")
    if isinstance(jobs, str | Mapping) or not isinstance(jobs, Iterable):
        raise InvalidOption(f"a batch is a list of jobs, not {jobs!r}")
    found: dict[str, WantedJob] = {}
    for each in jobs:
        if not isinstance(each, str) and isinstance(each, Mapping):
            wanted = _from_entry(each, table)
        else:
            wanted = WantedJob(each, table.find(each).template)
        if wanted.job_id in found:
            raise DuplicateId(f"job {wanted.job_id!r} is in the batch more than once")
        own = wanted.task.timeout
        if limit is not None and (own is None or limit < own):
            wanted = WantedJob(wanted.job_id, wanted.task.replace(timeout=limit))
        found[wanted.job_id] = wanted
    return [*found.values()]


def _from_entry(given: Mapping[str, Any], table: JobTable) -> WantedJob:
    job_id = given.get("job_id", given.get("id"))
    if not isinstance(job_id, str) or not job_id.strip():
        raise BlankId(f"a job in a batch needs a job_id, non-blank text, not {job_id!r}")
    unknown = sorted(set(given) - _OPTIONS)
    if not unknown and "task" not in given and job_id in table.jobs:
        return _changed(WantedJob(job_id, table.find(job_id).template), given)
    if unknown or "task" not in given:
        wrong = f"no option {unknown[0]!r}" if unknown else "no task"
        raise InvalidOption(f"job {job_id!r}: there is {wrong}; it has {', '.join(_OPTIONS)}")
    task = template(job_id, given["task"], given.get("timeout"), given.get("retry"), overlap=False)
    return WantedJob(job_id, task)


def _changed(wanted: WantedJob, given: Mapping[str, Any]) -> WantedJob:
    """A job of the scheduler, with the options of an entry that names it."""
    changes: dict[str, Any] = {}
    if given.get("timeout") is not None:
        changes["timeout"] = seconds(given["timeout"], f"job {wanted.job_id!r}: timeout")
    if given.get("retry") is not None:
        changes["retry"] = given["retry"]
    return WantedJob(wanted.job_id, wanted.task.replace(**changes)) if changes else wanted

"""Firings that are under way, and their records when they have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, NamedTuple

from interlock.errors import NotRunning, ShuttingDown
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.patterns.cron.job import job_of_task
from interlock.patterns.cron.job_state import moment_of_text, moment_text
from interlock.runtime.handle import Handle
from interlock.runtime.outcome_conversion import error_text, status_word

Trigger = Literal["schedule", "manual", "batch"]
_NOT_STARTED = (State.BLOCKED, State.WAITING, State.RETRYING)


class Firing(NamedTuple):
    """One time that a job runs."""

    job_id: str
    task_id: str
    trigger: Trigger
    due: float | None = None


class ActiveFirings:
    """The firings that have no outcome yet, by job."""

    def __init__(self, ended: Callable[[dict[str, Any]], None]) -> None:
        self._ended = ended
        self._by_job: dict[str, dict[str, tuple[Firing, Handle[Any]]]] = {}
        self._none = asyncio.Event()
        self._none.set()

    def __bool__(self) -> bool:
        return bool(self._by_job)

    def follow(self, firing: Firing, handle: Handle[Any]) -> None:
        """Count it as under way until it has its outcome."""
        self._by_job.setdefault(firing.job_id, {})[firing.task_id] = firing, handle
        self._none.clear()
        handle.when_settled(partial(self._settled, firing, handle))

    def _settled(self, firing: Firing, handle: Handle[Any], error: BaseException | None) -> None:
        of_its_job = self._by_job[firing.job_id]
        del of_its_job[firing.task_id]
        if not of_its_job:
            del self._by_job[firing.job_id]
            if not self._by_job:
                self._none.set()
        if handle.outcome is not None:  # otherwise the run was interrupted, and will be resumed
            self._ended(record_of(firing, handle.outcome))

    async def settled(self) -> None:
        """Wait until none is under way."""
        await self._none.wait()

    def states_of(self, job_id: str) -> dict[str, State]:
        """The firings of one job, and the states of their tasks."""
        return {each.task_id: handle.state for each, handle in self._of(job_id)}

    def has_waiting(self, job_id: str) -> bool:
        """Whether a scheduled firing of this job has not started, or is to start again."""
        return any(True for _ in self._not_started(job_id))

    def cancel_waiting(self, job_id: str, reason: str) -> None:
        """Cancel the scheduled firings of a job that have not started; running ones continue."""
        for handle in list(self._not_started(job_id)):
            handle.cancel(reason)

    def cancel_all(self, reason: str) -> None:
        """Cancel every firing that is under way."""
        cancel_unfinished([each for job_id in self._by_job for _, each in self._of(job_id)], reason)

    def _of(self, job_id: str) -> list[tuple[Firing, Handle[Any]]]:
        return list(self._by_job.get(job_id, {}).values())

    def _not_started(self, job_id: str) -> Iterator[Handle[Any]]:
        for firing, handle in self._of(job_id):
            if firing.trigger == "schedule" and handle.state in _NOT_STARTED:
                yield handle


def cancel_unfinished(handles: list[Handle[Any]], reason: str) -> None:
    """Cancel the tasks that have no outcome, as far as the run still takes commands."""
    for handle in handles:
        if handle.outcome is None:
            with suppress(ShuttingDown, NotRunning):  # then nothing runs any more
                handle.cancel(reason)


def firing_of(task_id: str) -> Firing | None:
    """The firing of a task; None if the task is no firing."""
    found = job_of_task(task_id)
    if found is None:
        return None
    job_id, which = found
    trigger: Trigger = "manual" if which.startswith("manual-") else "batch"
    # `~2` is a time that came again on a clock that was set back.
    due = moment_of_text(which.partition("~")[0])
    return Firing(job_id, task_id, trigger if due is None else "schedule", due)


def record_of(firing: Firing, outcome: Outcome[Any]) -> dict[str, Any]:
    """The record of a firing: callers get it with the output, the job state without."""
    return {
        "job_id": firing.job_id,
        "status": status_word(outcome),
        "error": error_text(outcome),
        "attempts": outcome.attempts,
        "trigger": firing.trigger,
        "task_id": firing.task_id,
        "scheduled_at": None if firing.due is None else moment_text(firing.due),
        "started_at": _text(outcome.started_at),
        "ended_at": _text(outcome.ended_at),
        "duration_s": outcome.duration,
    }


def rejected(firing: Firing, error: Exception, now: float) -> dict[str, Any]:
    """The record of a firing that the run did not accept."""
    when = datetime.fromtimestamp(now, UTC)
    reason = ErrorRecord(type(error).__name__, str(error))
    return record_of(
        firing, Outcome(firing.task_id, State.FAILED, error=reason, attempts=0, ended_at=when)
    )


def _text(when: datetime | None) -> str | None:
    return None if when is None else f"{when.isoformat()[:-6]}Z"  # outcomes are in UTC

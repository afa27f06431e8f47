"""Firings that are under way, and what is told of them when they are over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, NamedTuple

from interlock.errors import NotRunning, ShuttingDown
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.patterns.cron.book import at, moment
from interlock.patterns.cron.job import job_of
from interlock.runtime.handle import Handle

Trigger = Literal["schedule", "manual", "batch"]
_STATUS = {State.SUCCEEDED: "success", State.TIMED_OUT: "timeout", State.CANCELLED: "cancelled"}
_NOT_STARTED = (State.BLOCKED, State.WAITING, State.RETRYING)


class Firing(NamedTuple):
    """One time that a job runs."""

    job_id: str
    name: str
    """The id of its task."""
    trigger: Trigger
    due: float | None = None


class Batch(NamedTuple):
    """Firings that somebody waits for together."""

    firings: Sequence[Firing]
    fail_fast: bool
    """Whether one that fails ends the others."""
    told: dict[str, dict[str, Any]]
    """What became of them, by name."""


class Firings:
    """Those that have no outcome yet, by their jobs."""

    def __init__(self, ended: Callable[[dict[str, Any]], None]) -> None:
        self._ended = ended
        self._under_way: dict[str, dict[str, tuple[Firing, Handle[Any]]]] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def follow(self, firing: Firing, handle: Handle[Any], batch: Batch | None = None) -> None:
        """From now on it is under way, maybe as one of a batch."""
        self._under_way.setdefault(firing.job_id, {})[firing.name] = firing, handle
        self._quiet.clear()
        handle.when_settled(partial(self._settled, firing, handle, batch))

    def _settled(
        self,
        firing: Firing,
        handle: Handle[Any],
        batch: Batch | None,
        error: BaseException | None,
    ) -> None:
        of_its_job = self._under_way[firing.job_id]
        del of_its_job[firing.name]
        if not of_its_job:
            del self._under_way[firing.job_id]
            if not self._under_way:
                self._quiet.set()
        if handle.outcome is not None:  # otherwise the run was cut short, and will be taken up
            record = entry(firing, handle.outcome)
            self._ended(record)
            if batch is not None:
                batch.told[firing.name] = {**record, "output": handle.outcome.result}
                if batch.fail_fast and not handle.outcome.succeeded:
                    self.cancel(f"{firing.job_id!r} did not succeed", batch.firings)

    async def quiet(self) -> None:
        """Wait until none is under way."""
        await self._quiet.wait()

    def of(self, job_id: str) -> dict[str, State]:
        """Those of one job, and how far they are."""
        return {each.name: handle.state for each, handle in self._mine(job_id)}

    def one_waits(self, job_id: str) -> bool:
        """Whether a scheduled firing of this job is still to start, or to start again."""
        return job_id in self._under_way and any(True for _ in self._not_started(job_id))

    def call_off(self, job_id: str, reason: str) -> None:
        """End the scheduled firings of a job that have not started; what runs goes on."""
        for handle in list(self._not_started(job_id)):
            handle.cancel(reason)

    def cancel(self, reason: str, firings: Iterable[Firing] | None = None) -> None:
        """End all of them, or those named, as far as they have not ended."""
        if not self._under_way:
            return
        if firings is None:
            firings = [each for job_id in self._under_way for each, _ in self._mine(job_id)]
        for firing in firings:
            found = self._under_way.get(firing.job_id, {}).get(firing.name)
            if found is not None:
                with contextlib.suppress(ShuttingDown, NotRunning):  # then nothing runs any more
                    found[1].cancel(reason)

    def _mine(self, job_id: str) -> Iterable[tuple[Firing, Handle[Any]]]:
        return self._under_way.get(job_id, {}).values()

    def _not_started(self, job_id: str) -> Iterator[Handle[Any]]:
        for firing, handle in self._mine(job_id):
            if firing.trigger == "schedule" and handle.state in _NOT_STARTED:
                yield handle


def firing_of(name: str) -> Firing | None:
    """The firing whose task has this id; None if it is somebody else's."""
    found = job_of(name)
    if found is None:
        return None
    job_id, which = found
    trigger: Trigger = "manual" if which.startswith("manual-") else "batch"
    due = at(which.partition("~")[0])  # `~2`: a time that came again on a clock that was set back
    return Firing(job_id, name, trigger if due is None else "schedule", due)


def entry(firing: Firing, outcome: Outcome[Any]) -> dict[str, Any]:
    """What callers and the book are told of a firing; the book without its output."""
    return {
        "job_id": firing.job_id,
        "status": _STATUS.get(outcome.status, "error"),
        "error": None if outcome.succeeded else outcome.reason,
        "attempts": outcome.attempts,
        "trigger": firing.trigger,
        "task_id": firing.name,
        "scheduled_at": None if firing.due is None else moment(firing.due),
        "started_at": _text(outcome.started_at),
        "ended_at": _text(outcome.ended_at),
        "duration_s": outcome.duration,
    }


def refused(firing: Firing, error: Exception, now: float) -> dict[str, Any]:
    """The same, of a firing that the run did not take in."""
    when = datetime.fromtimestamp(now, UTC)
    record = ErrorRecord(type(error).__name__, str(error))
    return entry(
        firing, Outcome(firing.name, State.FAILED, error=record, attempts=0, ended_at=when)
    )


def _text(when: datetime | None) -> str | None:
    return None if when is None else f"{when.isoformat()[:-6]}Z"  # outcomes are in UTC

"""What is known of each job beside what the program says, stored in the records of the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, Protocol

from interlock.patterns.cron.due import MissedTimes

Switched = Literal["enabled", "disabled", "removed"]
_RECENT = 20
"""How many firings, and how many gaps, are kept of each job."""


class StateRecords(Protocol):
    """Where job states are stored: `rt.records(...)`."""

    def items(self) -> Iterator[tuple[str, Any]]: ...

    async def put(self, key: str, value: Any) -> None: ...


@dataclass
class JobState:
    """What is known of one job. The names of the fields are those in the records."""

    switched: Switched | None = None
    """What `enable`, `disable` or `remove` said last. It wins over what `add` says."""
    plan: str = ""
    """The schedule and its zone. When they change, nothing is due for the past."""
    anchor: float = 0.0
    """From when intervals are counted."""
    since: float | None = None
    """Up to this moment every due time is fired, merged or missed."""
    runs: int = 0
    """Scheduled firings that have ended, with any outcome."""
    merged: int = 0
    missed: int = 0
    last_scheduled: dict[str, Any] | None = None
    last_manual: dict[str, Any] | None = None
    set_back: dict[str, str] | None = None
    """From which moment to which the clock was set back when the job last had to restart."""
    firings: list[dict[str, Any]] = field(default_factory=list)
    misses: list[dict[str, Any]] = field(default_factory=list)

    def add_missed(self, missed: MissedTimes) -> None:
        """Record times for which nothing will run."""
        self.missed += missed.times
        entry = {
            "count": missed.times,
            "at_least": missed.at_least,
            "first": moment_text(missed.first),
            "last": moment_text(missed.last),
        }
        self.misses.append(entry)
        del self.misses[:-_RECENT]

    def restart(self, since: float, now: float) -> dict[str, str]:
        """Restart at `now`: the state says `since`, which is far in the future."""
        self.set_back = {"from": moment_text(int(since)), "to": moment_text(int(now))}
        self.since = now
        return self.set_back

    def may_repeat(self, due: float) -> bool:
        """Whether a time that was fired comes again on a clock that was set back by a lot."""
        until = None if self.set_back is None else moment_of_text(self.set_back["from"])
        return until is not None and due <= until

    def add_ended(self, record: dict[str, Any]) -> None:
        """Record a firing that has ended. Manual ones do not replace scheduled ones."""
        if record["trigger"] == "schedule":
            self.last_scheduled = record
            self.runs += 1
        else:
            self.last_manual = record
        self.firings.append(record)
        del self.firings[:-_RECENT]


class JobStates:
    """The state of each job, and which of them have to be stored."""

    def __init__(self) -> None:
        self._states: dict[str, JobState] = {}
        self._changed: dict[str, None] = {}
        self._storing = asyncio.Lock()

    def of(self, job_id: str) -> JobState:
        """The state of a job; a new one if nothing is known of it."""
        state = self._states.get(job_id)
        if state is None:
            state = self._states[job_id] = JobState()
        return state

    def changed(self, job_id: str) -> JobState:
        """The same, to be stored again."""
        self._changed[job_id] = None
        return self.of(job_id)

    def load(self, records: StateRecords) -> None:
        """Take over what is stored. Decisions that were not stored yet stay."""
        names = {each.name for each in fields(JobState)}
        for job_id, stored in records.items():
            # A later version may have stored more fields than this one knows.
            state = JobState(**{name: stored[name] for name in names & set(stored)})
            if job_id in self._changed:
                state.switched = self.of(job_id).switched
            self._states[job_id] = state

    async def store(self, records: StateRecords, flush: Callable[[], Awaitable[None]]) -> None:
        """Store what has changed; it is durable when this returns.

        The run itself is flushed first. The other way round, a crash between the two would lose a
        firing that the state says was fired; this way it is found in the run.
        """
        async with self._storing:
            while self._changed:
                states = {job_id: asdict(self.of(job_id)) for job_id in self._changed}
                self._changed.clear()
                try:
                    await flush()
                    for job_id, state in states.items():
                        await records.put(job_id, state)
                except BaseException:
                    self._changed.update(dict.fromkeys(states))
                    raise


@lru_cache(maxsize=64)  # many jobs are due at the same moments
def moment_text(moment: float) -> str:
    """A moment as text, in UTC."""
    return f"{datetime.fromtimestamp(moment, UTC).isoformat()[:-6]}Z"


def moment_of_text(text: str) -> float | None:
    """The moment that a text names; None for other texts."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None

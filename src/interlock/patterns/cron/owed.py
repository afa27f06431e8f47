"""What a job owes when somebody looks at the clock: mostly one firing, after a pause maybe more."""

from __future__ import annotations

from typing import NamedTuple

from interlock.patterns.cron.schedule import Schedule

_COUNTED = 1_000
"""So many missed times are counted one by one. A job that runs every second and was away for a
month has missed millions, and nobody wants to wait for the exact number."""


class Missed(NamedTuple):
    """Times that were too long ago: how many; `at_least` so many, if nobody counted on."""

    times: int
    first: float
    last: float
    at_least: bool


class Owed(NamedTuple):
    """What was due after one moment and up to another."""

    due: float | None = None
    """The time to run for now: of those within the grace the last one."""
    merged: int = 0
    """Earlier ones within the grace, for which the same firing stands."""
    missed: Missed | None = None
    following: float | None = None
    """The first time to come."""


def owed(schedule: Schedule, since: float, now: float, grace: float) -> Owed:
    """Whatever fell due after `since` and up to `now`.

    What is within the grace runs once, together; what is older is missed.
    """
    recent = max(since, now - grace)
    due, merged = None, 0
    # From a second before: a time exactly `grace` ago is still within it.
    at = schedule.after(max(since, recent - 1))
    while at is not None and at <= now and merged < _COUNTED:
        if at >= recent:
            merged += due is not None
            due = at
        at = schedule.after(at)
    if merged == _COUNTED:
        at = schedule.after(now)
    missed = _missed(schedule, since, recent) if recent > since else None
    return Owed(due, merged, missed, at)


def _missed(schedule: Schedule, since: float, recent: float) -> Missed | None:
    count, first, last = 0, None, 0.0
    at = schedule.after(since)
    while at is not None and at < recent:
        if count == _COUNTED:
            return Missed(count, first or last, last, at_least=True)
        count, first, last = count + 1, at if first is None else first, at
        at = schedule.after(at)
    return None if first is None else Missed(count, first, last, at_least=False)

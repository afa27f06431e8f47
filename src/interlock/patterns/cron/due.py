"""Which times of a schedule have come: mostly one to fire, after a pause some merged or missed."""

from __future__ import annotations

from typing import NamedTuple

from interlock.patterns.cron.schedule import Schedule

_COUNTED = 1_000
"""How many times are counted one by one. A job that runs every second and was away for a month has
missed millions, and counting them would hold up the clock."""


class MissedTimes(NamedTuple):
    """Times that passed too long ago; `at_least` if counting stopped there."""

    times: int
    first: float
    last: float
    at_least: bool


class DueTimes(NamedTuple):
    """What fell due after one moment and up to another."""

    due: float | None = None
    """The time to fire for now: the last one within the grace."""
    merged: int = 0
    """How many earlier ones within the grace the same firing stands for."""
    missed: MissedTimes | None = None
    following: float | None = None
    """The first time to come."""


def due_times(schedule: Schedule, since: float, now: float, grace: float) -> DueTimes:
    """What fell due after `since` and up to `now`.

    Times within the grace fire once, together; older ones are missed.
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
    return DueTimes(due, merged, missed, at)


def _missed(schedule: Schedule, since: float, recent: float) -> MissedTimes | None:
    count, first, last = 0, None, 0.0
    at = schedule.after(since)
    while at is not None and at < recent:
        if count == _COUNTED:
            return MissedTimes(count, first or last, last, at_least=True)
        count, first, last = count + 1, at if first is None else first, at
        at = schedule.after(at)
    return None if first is None else MissedTimes(count, first, last, at_least=False)

"""When a job is due: a cron expression in a time zone, or an interval.

CronSim reads the expressions, and is only asked about wall clocks without a zone. What happens when
a clock is put forward or back is decided here, the same for five and six fields:

- A job that runs in every hour of the day follows real time: it runs whenever the clock shows a
  time that matches, so it neither pauses nor runs more often than usual.
- Every other job runs once for each time that it names. A time that the clock shows twice counts
  the first time; times that it skips are due once, right after the gap.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol

from cronsim import CronSim, CronSimError

from interlock.errors import InvalidOption
from interlock.model.duration import seconds
from interlock.patterns.cron.zone import change_between, first_moment_of, moment_of, shown_at

_SECOND = timedelta(seconds=1)
_LONGEST = 100 * 366 * 86_400
"""Seconds. A date after the year 9999 cannot be represented."""
_EVERY_HOUR = frozenset(range(24))
_INTERVAL = re.compile(r"\s*\d[\d.\s]*[a-z][\da-z.\s]*", re.I)


class Schedule(Protocol):
    """When a job is due. Moments are seconds since 1970."""

    def after(self, moment: float) -> float | None:
        """The first time after this moment; None if there is none."""


@dataclass(frozen=True)
class Every:
    """An interval, counted in real time from an anchor. The first time is one interval after it."""

    interval: int
    anchor: float

    def after(self, moment: float) -> float:
        count = max(0, math.floor((moment - self.anchor) / self.interval))
        return self.anchor + (count + 1) * self.interval


@dataclass(frozen=True)
class Expression:
    """A cron expression: five fields, or six with the seconds first."""

    text: str
    zone: tzinfo
    follows_real_time: bool

    def after(self, moment: float) -> float | None:
        # In UTC no clock is ever changed, so both ways give the same.
        if self.follows_real_time and self.zone is not UTC:
            return self._in_real_time(moment)
        for wall in CronSim(self.text, shown_at(math.floor(moment), self.zone)):
            due = first_moment_of(wall, self.zone)
            if due > moment:
                return due
        return None

    def _in_real_time(self, moment: float) -> float | None:
        shown, since = shown_at(math.floor(moment), self.zone), moment
        while True:
            wall = next(CronSim(self.text, shown), None)
            if wall is None:
                return None
            due = moment_of(wall, since, self.zone)
            change = change_between(since, due, self.zone)
            if change is None:
                return due
            # After the change the clock shows something else: search again from there.
            shown, since = shown_at(change, self.zone) - _SECOND, change


def read_schedule(text: str, zone: tzinfo, anchor: float, what: str) -> Schedule:
    """Read a schedule such as `*/5 * * * *` or `15m`; `what` names the job in errors."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidOption(f"{what}: schedule is {text!r}; write '0 3 * * *' or '15m'")
    if _INTERVAL.fullmatch(text):
        interval = seconds(text, f"{what}: schedule")
        if not 1 <= interval <= _LONGEST or interval != int(interval):
            raise InvalidOption(
                f"{what}: schedule is {text!r}; an interval must be whole seconds, from one second "
                "to a hundred years"
            )
        return Every(int(interval), float(math.floor(anchor)))
    try:
        read = CronSim(text, datetime(2000, 1, 1))
    except CronSimError as error:
        raise InvalidOption(
            f"{what}: schedule is {text!r}: {error}. Write five fields (minute hour day month "
            "weekday), six with seconds first, or an interval such as '15m'"
        ) from error
    expression = Expression(text, zone, read.hours == _EVERY_HOUR)
    if expression.after(anchor) is None:
        raise InvalidOption(f"{what}: schedule is {text!r}, a time that never comes")
    return expression

"""A virtual year of a scheduler, in zones that change their clocks: every firing, to the second.

The expectation is written by hand from the calendar of 2026 and knows no time zone data: days, and
the offsets that hold on them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, date, datetime, timedelta

from interlock import CronScheduler, TaskContext
from interlock.testing.virtual_run import simulate
from tests.unit.patterns.clocks import ports_from

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
YEAR = [date(2026, 1, 1) + timedelta(days=number) for number in range(365)]

# In 2026 the clocks of Berlin go from 02:00 to 03:00 on 29 March, and from 03:00 back to 02:00 on
# 25 October: both at 01:00 UTC. Those of New York go from 02:00 to 03:00 on 8 March (07:00 UTC),
# and from 02:00 back to 01:00 on 1 November (06:00 UTC). Those of Sydney go back from 03:00 to
# 02:00 on 5 April (16:00 UTC of the day before), and from 02:00 to 03:00 on 4 October.
BERLIN = (date(2026, 3, 29), date(2026, 10, 25))
NEW_YORK = (date(2026, 3, 8), date(2026, 11, 1))


def utc(day: date, hour: int, minute: int, offset: float) -> datetime:
    """A time of the wall clock at so many hours ahead of UTC."""
    wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
    return wall - timedelta(hours=offset)


def berlin_at_half_past_two() -> set[datetime]:
    """Once a day: right after the gap on the day that has none, the first of the day with two."""
    expected = set()
    for day in YEAR:
        if day == BERLIN[0]:
            expected.add(utc(day, 3, 0, 2))
        else:
            summer = BERLIN[0] < day <= BERLIN[1]
            expected.add(utc(day, 2, 30, 2 if summer else 1))
    return expected


def new_york_at_half_past_one() -> set[datetime]:
    expected = {utc(day, 1, 30, -5) for day in YEAR if day <= NEW_YORK[0] or day > NEW_YORK[1]}
    return expected | {utc(day, 1, 30, -4) for day in YEAR if NEW_YORK[0] < day <= NEW_YORK[1]}


def new_york_every_two_hours_by_night() -> set[datetime]:
    """At 0, 2 and 4 o'clock: 2 o'clock is skipped on 8 March, and runs at 3 o'clock instead."""
    expected = set()
    for day in YEAR:
        for hour in (0, 2, 4):
            summer = NEW_YORK[0] < day < NEW_YORK[1]
            if day == NEW_YORK[0]:
                summer = hour > 0
                expected.add(utc(day, 3 if hour == 2 else hour, 0, -4 if summer else -5))
                continue
            if day == NEW_YORK[1]:
                summer = hour == 0
            expected.add(utc(day, hour, 0, -4 if summer else -5))
    return {each for each in expected if BEGIN < each < END}


def sydney_at_half_past_two() -> set[datetime]:
    """The other way round: summer first, and the day with two such times in April."""
    back, on = date(2026, 4, 5), date(2026, 10, 4)
    expected = set()
    for day in [*YEAR, date(2027, 1, 1)]:
        if day == on:
            expected.add(utc(day, 3, 0, 11))
        else:
            expected.add(utc(day, 2, 30, 10 if back < day < on else 11))
    return {each for each in expected if BEGIN < each < END}


def every(hours: int, first: datetime) -> set[datetime]:
    """Real time: the same distance all through the year."""
    steps = int((END - first) / (hours * HOUR)) + 1
    return {at for number in range(steps) if (at := first + number * hours * HOUR) < END}


JOBS = {
    "berlin": ("30 2 * * *", "Europe/Berlin", berlin_at_half_past_two()),
    "berlin-seconds": ("0 30 2 * * *", "Europe/Berlin", berlin_at_half_past_two()),
    "berlin-hourly": ("15 * * * *", "Europe/Berlin", every(1, BEGIN + 0.25 * HOUR)),
    "new-york": ("30 1 * * *", "America/New_York", new_york_at_half_past_one()),
    "new-york-nights": ("0 0-4/2 * * *", "America/New_York", new_york_every_two_hours_by_night()),
    "new-york-interval": ("6h", "America/New_York", every(6, BEGIN + 6 * HOUR)),
    "sydney": ("30 2 * * *", "Australia/Sydney", sydney_at_half_past_two()),
}


def test_a_year_with_both_changes_of_the_clock_fires_exactly_when_it_should() -> None:
    fired: dict[str, list[datetime]] = {name: [] for name in JOBS}

    async def work(ctx: TaskContext) -> None:
        now = BEGIN + timedelta(seconds=asyncio.get_running_loop().time())
        fired[ctx.task.id.removeprefix("cron-").rpartition("@")[0]].append(now)

    async def year() -> list[dict[str, object]]:
        cron = CronScheduler(max_concurrent=50, ports=ports_from(BEGIN))
        for name, (schedule, zone, _) in JOBS.items():
            cron.add(name, schedule, work, timezone=zone)
        async with cron:
            await asyncio.sleep((END - BEGIN).total_seconds() - 1)
            return cron.list()

    run = simulate(year, max_steps=2_000_000)
    rows = run.value()
    for name, (_, _, expected) in JOBS.items():
        assert fired[name] == sorted(expected), name
    # 365 days; 8,760 hours; three nightly times on 365 days, less the one before the year began.
    assert {name: len(times) for name, times in fired.items()} == {
        "berlin": 365,
        "berlin-seconds": 365,
        "berlin-hourly": 8760,
        "new-york": 365,
        "new-york-nights": 3 * 365,
        "new-york-interval": 4 * 365 - 1,
        "sydney": 365,
    }
    assert Counter(row["missed"] for row in rows) == {0: len(JOBS)}
    assert not run.leaked

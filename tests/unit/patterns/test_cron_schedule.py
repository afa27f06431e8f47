"""Schedules: what is understood, and when it is due, against a slow and simple second opinion."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from interlock import InvalidOption
from interlock.patterns.cron.due import DueTimes, due_times
from interlock.patterns.cron.schedule import Every, Schedule, read_schedule
from interlock.patterns.cron.zone import zone_of

MINUTE = timedelta(minutes=1)
Fits = Callable[[datetime], bool]

# Where the clock is changed: forward and back, by an hour or by half of one, by night, at midnight
# and twice in a few weeks; and where it is not.
CHANGES = [
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Africa/Cairo", "2026-04-24"),
    ("Africa/Cairo", "2026-10-30"),
    ("America/Havana", "2026-03-08"),
    ("America/Havana", "2026-11-01"),
    ("Africa/Casablanca", "2026-02-15"),
    ("Africa/Casablanca", "2026-03-22"),
    ("Asia/Kolkata", "2026-03-29"),
    ("UTC", "2026-03-29"),
]
# With a matcher of our own for each. The first three run in every hour, the others do not.
EXPRESSIONS: list[tuple[str, bool, Fits]] = [
    ("* * * * *", True, lambda wall: True),
    ("*/20 * * * *", True, lambda wall: wall.minute % 20 == 0),
    ("30 0-23 * * *", True, lambda wall: wall.minute == 30),
    ("30 2 * * *", False, lambda wall: (wall.hour, wall.minute) == (2, 30)),
    ("0 0 * * *", False, lambda wall: (wall.hour, wall.minute) == (0, 0)),
    ("*/15 1-3 * * *", False, lambda wall: wall.minute % 15 == 0 and 1 <= wall.hour <= 3),
    ("0 */2 * * *", False, lambda wall: wall.minute == 0 and wall.hour % 2 == 0),
    (
        "45 1,2 * * 0",
        False,
        lambda wall: wall.minute == 45 and wall.hour in (1, 2) and _sunday(wall),
    ),
]


def _sunday(wall: datetime) -> bool:
    return wall.isoweekday() == 7


def second_opinion(
    begin: datetime, end: datetime, zone: tzinfo, real_time: bool, fits: Fits
) -> Iterator[datetime]:
    """Minute by minute through real time, with an eye on what the clock shows."""
    shown: set[datetime] = set()
    now = begin
    before = now.astimezone(zone).replace(tzinfo=None) - MINUTE
    while now < end:
        wall = now.astimezone(zone).replace(tzinfo=None)
        skipped = [before + MINUTE * step for step in range(1, (wall - before) // MINUTE)]
        if real_time:
            due = fits(wall)
        else:
            due = any(map(fits, skipped)) or (fits(wall) and wall not in shown)
        shown.update(skipped, [wall])
        if due and now > begin:
            yield now
        before = wall
        now += MINUTE


def times(schedule: Schedule, begin: datetime, end: datetime) -> list[datetime]:
    found, at = [], schedule.after(begin.timestamp())
    while at is not None and at < end.timestamp():
        found.append(datetime.fromtimestamp(at, UTC))
        at = schedule.after(at)
    return found


@pytest.mark.parametrize(("zone_name", "day"), CHANGES)
@pytest.mark.parametrize("number", range(len(EXPRESSIONS)), ids=[each[0] for each in EXPRESSIONS])
def test_around_every_change_of_a_clock_no_time_is_doubled_or_dropped(
    zone_name: str, day: str, number: int
) -> None:
    text, real_time, fits = EXPRESSIONS[number]
    zone = ZoneInfo(zone_name)
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
    end = begin + timedelta(days=2.5)
    expected = list(second_opinion(begin, end, zone, real_time, fits))
    for written in (text, f"0 {text}"):  # five fields and six behave the same
        assert times(read_schedule(written, zone, 0.0, "job"), begin, end) == expected


@pytest.mark.parametrize("zone_name", ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_a_job_asked_about_from_any_moment_gives_the_same_answer(zone_name: str) -> None:
    """Whoever asks in the middle of the hour that comes twice must not be sent back in time."""
    zone = ZoneInfo(zone_name)
    begin = datetime(2026, 10, 24, tzinfo=UTC)
    for text, _, _ in EXPRESSIONS:
        schedule = read_schedule(text, zone, 0.0, "job")
        known = [each.timestamp() for each in times(schedule, begin, begin + timedelta(days=12))]
        for minutes in range(0, 3 * 24 * 60, 7):
            moment = (begin + minutes * MINUTE).timestamp() + 0.5
            assert schedule.after(moment) == next(each for each in known if each > moment)


def test_a_rare_time_is_found_past_several_changes_of_the_clock() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    leap = read_schedule("* * 29 2 *", berlin, 0.0, "job")
    begin = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    assert leap.after(begin) == datetime(2028, 2, 29, tzinfo=berlin).timestamp()
    # The day of the change back, asked about half a year before: the first of its two hours.
    twice = read_schedule("* 0-23 25 10 *", berlin, 0.0, "job")
    found = times(twice, datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
    assert len(found) == 25 * 60
    assert found[0] == datetime(2026, 10, 24, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "every"), [("15m", 900), ("1h", 3600), ("30s", 30), ("1h30m", 5400), (" 2 D ", 172800)]
)
def test_intervals_are_counted_from_an_anchor(text: str, every: int) -> None:
    schedule = read_schedule(text, UTC, 1000.7, "job")
    assert schedule == Every(every, 1000.0)
    assert schedule.after(1000.7) == 1000.0 + every
    assert schedule.after(1000.0 + every) == 1000.0 + 2 * every
    assert schedule.after(1000.0 + 7.5 * every) == 1000.0 + 8 * every
    assert schedule.after(0.0) == 1000.0 + every  # never before it was added


def test_six_fields_have_the_seconds_first() -> None:
    schedule = read_schedule("*/20 0 12 * * MON#1", UTC, 0.0, "job")
    begin = datetime(2026, 6, 1, tzinfo=UTC)
    assert [each.second for each in times(schedule, begin, begin + timedelta(days=7))] == [
        0,
        20,
        40,
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("61 * * * *", "Bad minute"),
        ("* * * *", "Wrong number of fields"),
        ("0 0 0 0 0 0 0", "Wrong number of fields"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("0 0 */20 * 1L", "never comes"),
        ("@daily", "Wrong number of fields"),
        ("", "write"),
        (None, "write"),
        (15, "write"),
        ("0s", "from one second"),
        ("40000d", "a hundred years"),
        ("500ms", "whole seconds"),
        ("15 parsecs", "schedule"),
    ],
)
def test_what_is_no_schedule_is_refused_and_the_job_named(text: str, says: str) -> None:
    with pytest.raises(InvalidOption, match=says) as refused:
        read_schedule(text, UTC, 0.0, "job 'nightly'")
    assert "job 'nightly'" in str(refused.value)


# What is owed after a pause


def minutely() -> Schedule:
    return read_schedule("* * * * *", UTC, 0.0, "job")


def test_what_is_due_in_time_is_one_firing() -> None:
    assert due_times(minutely(), since=0.0, now=60.0, grace=60.0) == DueTimes(60.0, following=120.0)
    assert due_times(minutely(), since=60.0, now=119.9, grace=60.0) == DueTimes(following=120.0)


def test_what_is_within_the_grace_runs_once_and_what_is_older_is_missed() -> None:
    debt = due_times(minutely(), since=0.0, now=630.0, grace=120.0)
    assert (debt.due, debt.merged) == (600.0, 1)
    assert debt.missed is not None
    assert (debt.missed.times, debt.missed.first, debt.missed.last) == (8, 60.0, 480.0)


def test_a_time_exactly_as_old_as_the_grace_is_within_it() -> None:
    assert due_times(minutely(), since=59.0, now=120.0, grace=60.0) == DueTimes(
        120.0, 1, following=180.0
    )
    debt = due_times(minutely(), since=59.0, now=120.5, grace=60.0)
    assert (debt.due, debt.merged) == (120.0, 0)
    assert debt.missed is not None
    assert debt.missed.times == 1


def test_with_no_grace_only_what_is_due_this_very_moment_runs() -> None:
    assert due_times(minutely(), since=0.0, now=60.0, grace=0.0) == DueTimes(60.0, following=120.0)
    debt = due_times(minutely(), since=0.0, now=61.0, grace=0.0)
    assert debt.due is None
    assert debt.missed is not None


def test_a_clock_that_was_set_back_owes_nothing() -> None:
    assert due_times(minutely(), since=3600.0, now=60.0, grace=60.0) == DueTimes(following=3660.0)


def test_millions_of_missed_times_are_not_counted_one_by_one() -> None:
    each_second = read_schedule("* * * * * *", UTC, 0.0, "job")
    debt = due_times(each_second, since=0.0, now=365 * 86400.0, grace=5.0)
    assert debt.missed is not None
    assert (debt.missed.times, debt.missed.at_least) == (1000, True)
    assert (debt.due, debt.merged) == (365 * 86400.0, 5)
    debt = due_times(each_second, since=0.0, now=365 * 86400.0, grace=365 * 86400.0)
    assert (debt.merged, debt.missed, debt.following) == (1000, None, 365 * 86400.0 + 1)


# Time zones


def test_a_time_zone_is_a_name_or_an_object_and_utc_by_default() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert zone_of(None, "job") is zone_of("UTC", "job") is UTC
    assert zone_of("Europe/Berlin", "job") is zone_of(berlin, "job") is berlin


@pytest.mark.parametrize("name", ["Europe/Berlinn", "", "../etc/passwd", "Europe", 2])
def test_an_unknown_time_zone_is_refused_and_the_job_named(name: str) -> None:
    with pytest.raises(InvalidOption, match=r"job 'nightly': .*Europe/Berlin"):
        zone_of(name, "job 'nightly'")


def test_without_time_zone_data_the_error_says_what_to_install(tmp_path: Path) -> None:
    """As in many a slim container. UTC needs no data."""
    script = (
        "from interlock import CronScheduler\n"
        "cron = CronScheduler()\n"
        "cron.add('utc', '0 3 * * *', print, timezone='UTC')\n"
        "cron.add('none', '0 3 * * *', print)\n"
        "cron.add('berlin', '0 3 * * *', print, timezone='Europe/Berlin')\n"
    )
    # `-P` and a meta path that refuses `tzdata`: neither the system nor a package has the data.
    block = "import sys; sys.modules['tzdata'] = None\n"
    run = subprocess.run(
        [sys.executable, "-c", block + script],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONTZPATH": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
        },
    )
    last = run.stderr.strip().splitlines()[-1]
    assert "job 'berlin'" in last
    assert "no time zone data" in last
    assert "tzdata" in last

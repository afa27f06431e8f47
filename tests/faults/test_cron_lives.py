"""Schedulers that are stopped and killed and started again: nothing double, nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import AlreadyRunning, CronScheduler, Event, Kind, TaskContext
from interlock.journal.reader import Reader
from interlock.patterns.cron import cron_run
from interlock.testing.interruptions import crash_at
from tests.faults.cron_lives import NOON, Lives
from tests.simulation.faulty_disk import DiskFault, FaultyDisk


def row(cron: CronScheduler, job_id: str = "job") -> dict[str, Any]:
    return next(each for each in cron.list() if each["job_id"] == job_id)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def test_after_a_restart_nothing_is_fired_twice_and_what_was_missed_does_not_storm(
    lives: Lives,
) -> None:
    async def minutes(cron: CronScheduler, how_long: float) -> dict[str, Any]:
        cron.add("job", "* * * * *", lives.agent(1))
        async with cron:
            await asyncio.sleep(how_long)
            return row(cron)

    before = lives.live(lambda cron: minutes(cron, 150)).value()  # until 12:02:30
    assert lives.minutes() == pytest.approx([1, 2], abs=0.01)
    assert (before["runs"], before["missed"]) == (2, 0)
    lives.began += timedelta(hours=3)
    told = lives.live(lambda cron: minutes(cron, 100)).value()  # from 15:02:30
    # Of what it slept through, one time was within the grace of a minute, and runs at once. The
    # others are on record, and do not run.
    assert lives.minutes()[2:] == pytest.approx([182.5, 183, 184], abs=0.01)
    assert told["missed"] == 179
    assert told["misses"] == [
        {
            "count": 179,
            "at_least": False,
            "first": "2026-06-01T12:03:00Z",
            "last": "2026-06-01T15:01:00Z",
        }
    ]
    assert told["runs"] == 5


def test_what_was_disabled_or_removed_stays_so_until_somebody_enables_it(lives: Lives) -> None:
    def add(cron: CronScheduler) -> None:
        for name in ("disabled", "removed", "back"):
            cron.add(name, "* * * * *", lives.agent(1))

    async def first(cron: CronScheduler) -> None:
        add(cron)
        cron.disable("back")  # before it runs: that counts as well
        async with cron:
            cron.disable("disabled")
            cron.remove("removed")

    async def second(cron: CronScheduler) -> None:
        async with cron:
            add(cron)  # inside the block, as many programs do
            await asyncio.sleep(200)
            assert [each["job_id"] for each in cron.list()] == ["disabled", "back"]
            assert not any(each["enabled"] for each in cron.list())

    async def third(cron: CronScheduler) -> None:
        add(cron)
        async with cron:
            await asyncio.sleep(100)
            cron.enable("back")
            cron.enable("removed")
            await asyncio.sleep(60)

    async def fourth(cron: CronScheduler, *enabled: bool) -> None:
        add(cron)
        if not any(enabled):
            cron.disable("back")
            cron.disable("removed")
        async with cron:
            assert [each["enabled"] for each in cron.list()] == list(enabled)

    for program in (first, second):
        lives.live(program).value()
    assert lives.visits == []
    lives.live(third).value()
    assert {each.task.partition("@")[0] for each in lives.visits} == {"cron-back", "cron-removed"}
    assert len(lives.minutes()) == 2
    lives.live(lambda cron: fourth(cron, False, True, True)).value()
    lives.live(lambda cron: fourth(cron, False, False, False)).value()


def test_what_was_said_is_durable_once_it_is_saved(lives: Lives) -> None:
    async def dies(cron: CronScheduler) -> None:
        cron.add("job", "* * * * *", lives.agent(1))
        async with cron:
            cron.disable("job")
            await cron.flush()
            loop: Any = asyncio.get_running_loop()
            loop.crash()
            await asyncio.sleep(1)

    async def looks(cron: CronScheduler) -> bool:
        cron.add("job", "* * * * *", lives.agent(1))
        async with cron:
            return bool(row(cron)["enabled"])

    assert lives.live(dies).crashed
    assert lives.live(looks).value() is False


def test_records_by_hand_and_by_schedule_survive_beside_each_other(lives: Lives) -> None:
    async def first(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "* * * * *", lives.agent(1))
        async with cron:
            await asyncio.sleep(62)
            await cron.trigger("job")
            return row(cron)

    async def second(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "* * * * *", lives.agent(1))
        await cron.trigger("job")  # as it is, without a block
        async with cron:
            return row(cron)

    before = lives.live(first).value()
    after = lives.live(second).value()
    assert after["last_scheduled"] == before["last_scheduled"]
    assert after["last_scheduled"]["scheduled_at"] == "2026-06-01T12:01:00Z"
    assert [each["trigger"] for each in after["firings"]] == ["schedule", "manual", "manual"]
    assert after["firings"][:2] == before["firings"]


def test_intervals_go_on_from_where_they_were_counted(lives: Lives) -> None:
    async def program(cron: CronScheduler) -> None:
        cron.add("job", "10m", lives.agent(1))
        async with cron:
            await asyncio.sleep(15 * 60)

    lives.down = timedelta(minutes=3)
    for _ in range(3):
        lives.live(program).value()
    # Alive from 0 to 15, 18 to 33 and 36 to 51 minutes, give or take a moment.
    assert lives.minutes() == pytest.approx([10, 20, 30, 40, 50], abs=0.01)


def test_a_job_with_another_schedule_owes_nothing_for_the_past(lives: Lives) -> None:
    async def program(cron: CronScheduler, schedule: str) -> dict[str, Any]:
        cron.add("job", schedule, lives.agent(1))
        async with cron:
            await asyncio.sleep(30)
            return row(cron)

    lives.down = timedelta(hours=5)
    lives.live(lambda cron: program(cron, "0 * * * *")).value()
    told = lives.live(lambda cron: program(cron, "7 * * * *")).value()
    assert (told["missed"], lives.visits) == (0, [])


def test_what_was_cut_off_is_brought_to_its_end_in_the_next_life(lives: Lives) -> None:
    async def dies(cron: CronScheduler) -> None:
        cron.add("job", "0 13 * * *", lives.agent(600), timeout=None)
        async with cron:
            await asyncio.sleep(3700)
            loop: Any = asyncio.get_running_loop()
            loop.crash()
            await asyncio.sleep(1)

    async def lives_on(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "0 13 * * *", lives.agent(600), timeout=None)
        async with cron:
            await asyncio.sleep(700)
            return row(cron)

    lives.down = timedelta(minutes=30)
    assert lives.live(dies).crashed
    told = lives.live(lives_on).value()
    assert [(each.life, each.what) for each in lives.visits] == [
        (1, "began"),
        (2, "began"),
        (2, "ended"),
    ]
    assert (told["runs"], told["missed"], told["last_scheduled"]["status"]) == (1, 0, "success")
    assert told["last_scheduled"]["scheduled_at"] == "2026-06-01T13:00:00Z"


@pytest.mark.parametrize("crashes", [False, True])
def test_after_a_life_on_a_clock_that_was_far_ahead_jobs_begin_anew_and_only_once(
    lives: Lives, crashes: bool
) -> None:
    async def program(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "* * * * *", lives.agent(1))
        async with cron:
            await asyncio.sleep(150)
            if crashes:
                loop: Any = asyncio.get_running_loop()
                loop.crash()
                await asyncio.sleep(1)
            return row(cron)

    lives.began += timedelta(days=365)
    lives.live(program)
    lives.began -= timedelta(days=365)
    lives.down = timedelta(minutes=3)  # of which the last one is within the grace
    for _ in range(2):
        before = len(lives.minutes())
        lives.live(program)
        assert len(lives.minutes()) - before >= 2
    crashes = False
    told = lives.live(program).value()
    assert told["set_back"]["to"] == "2026-06-01T12:02:30Z"
    assert told["missed"] == 4


@pytest.mark.parametrize("how", ["disabled", "not added", "removed"])
def test_what_was_cut_off_and_nobody_wants_any_more_does_not_start(lives: Lives, how: str) -> None:
    async def dies(cron: CronScheduler) -> None:
        cron.add("job", "* * * * *", lives.agent(600))
        async with cron:
            await asyncio.sleep(70)
            if how == "disabled":
                cron.disable("job")
            if how == "removed":
                cron.remove("job")
            await cron.flush()
            loop: Any = asyncio.get_running_loop()
            loop.crash()
            await asyncio.sleep(1)

    async def lives_on(cron: CronScheduler) -> None:
        if how != "not added":
            cron.add("job", "* * * * *", lives.agent(600))
        async with cron:
            await asyncio.sleep(10)

    assert lives.live(dies).crashed
    lives.live(lives_on).value()
    assert [(each.life, each.what) for each in lives.visits] == [(1, "began")]
    with Reader(lives.path) as reader:
        assert not any(each.is_open for each in reader.runs())


def test_a_second_scheduler_on_the_same_journal_is_told_about_the_first(lives: Lives) -> None:
    async def program(cron: CronScheduler) -> None:
        async with cron:
            with pytest.raises(AlreadyRunning):
                async with CronScheduler(journal=lives.path):
                    raise AssertionError("there are two of them")

    lives.live(program).value()


@pytest.mark.parametrize("later", range(8))
def test_what_is_said_while_a_new_run_begins_is_neither_lost_nor_an_error(
    lives: Lives, later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron_run, "RENEWED_AFTER", 3)

    async def program(cron: CronScheduler) -> None:
        for name in ("job", "off", "gone"):
            cron.add(name, "* * * * *", lives.agent(1))
        async with cron:
            first = cron.runtime.run_id
            await asyncio.sleep(60.9)
            while not cron._run.is_renewing:
                await asyncio.sleep(0.0003)
            await asyncio.sleep(0.0005 * later)
            cron.disable("off")
            cron.remove("gone")
            cron.add("new", "30s", lives.agent(1))
            assert [each["job_id"] for each in cron.list()] == ["job", "off", "new"]
            await asyncio.sleep(0.1)
            assert cron.runtime.run_id != first
            assert (await cron.trigger("new"))["status"] == "success"
            await asyncio.sleep(60)

    async def looks(cron: CronScheduler) -> list[tuple[str, bool, int]]:
        for name in ("job", "off", "gone", "new"):
            cron.add(name, "* * * * *" if name != "new" else "30s", lives.agent(1))
        async with cron:
            return [(each["job_id"], each["enabled"], each["runs"]) for each in cron.list()]

    lives.live(program).value()
    assert lives.live(looks).value() == [("job", True, 2), ("off", False, 1), ("new", True, 2)]


def test_what_the_book_was_too_late_for_is_found_in_the_run(lives: Lives) -> None:
    """A crash at the very start of a firing, and one when it has just been told to be over."""

    def add(cron: CronScheduler) -> None:
        cron.add("job", "* * * * *", lives.agent(1))

    async def dies_when(cron: CronScheduler, kind: Kind) -> None:
        loop: Any = asyncio.get_running_loop()
        add(cron)
        async with cron:
            cron.runtime.listen(lambda event: loop.crash() if event.kind is kind else None)
            await asyncio.sleep(1000)

    async def looks(cron: CronScheduler) -> dict[str, Any]:
        add(cron)
        async with cron:
            await asyncio.sleep(3)
            return row(cron)

    lives.down = timedelta(minutes=10)
    assert lives.live(lambda cron: dies_when(cron, Kind.SUBMITTED)).crashed  # at 12:01
    told = lives.live(looks).value()  # at 12:11
    # Two to ten past twelve were missed, but not one past: that was cut off, and has run now.
    assert told["missed"] == 9
    assert [each["scheduled_at"] for each in told["firings"]] == [
        "2026-06-01T12:01:00Z",
        "2026-06-01T12:11:00Z",
    ]
    assert lives.live(lambda cron: dies_when(cron, Kind.SETTLED)).crashed  # at 12:21
    told = lives.live(looks).value()
    assert [each["scheduled_at"] for each in told["firings"]][2:] == [
        "2026-06-01T12:21:00Z",
        "2026-06-01T12:31:00Z",
    ]
    assert (
        Counter(each.task for each in lives.visits if each.what == "ended").most_common(1)[0][1]
        == 1
    )


async def _two_minutes(cron: CronScheduler, lives: Lives, told: set[str]) -> None:
    """Jobs of which some overlap in time. `told` are those that are said to be over."""

    async def chatty(ctx: TaskContext) -> None:
        """Something is being written at the moment in which the others are due."""
        await asyncio.sleep(0.996)
        for _ in range(8):
            ctx.log("still here")
            await asyncio.sleep(0.0006)

    def listen(event: Event) -> None:
        if event.kind is Kind.SETTLED:
            told.add(event.task_id)

    cron.add("quick", "* * * * *", lives.agent(0.5))
    cron.add("slow", "* * * * *", lives.agent(25))
    cron.add("seconds", "*/40 * * * * *", lives.agent(1))
    cron.add("chatty", "59 0 12 * * *", chatty)
    async with cron:
        cron.runtime.listen(listen)
        await asyncio.sleep((NOON + timedelta(minutes=2.5) - lives.now()).total_seconds())


def _lived_again(
    lives: Lives, expected: set[str], faults: Sequence[Any] = (), disk: FaultyDisk | None = None
) -> None:
    """A life that crashes, another one, and the judgement."""
    told: set[str] = set()
    first = lives.live(lambda cron: _two_minutes(cron, lives, told), faults, disk)
    assert first.crashed
    lives.live(lambda cron: _two_minutes(cron, lives, set())).value()
    ended = {each.task for each in lives.visits if each.what == "ended"}
    assert expected == ended
    runs = Counter((each.life, each.task) for each in lives.visits if each.what == "began")
    assert set(runs.values()) == {1}
    # What is known to be over is over. What was cut off is begun again: one of each job at most.
    assert not told & {task for life, task in runs if life == 2}
    again = [task for life, task in runs if life == 2 and (1, task) in runs]
    assert len({each.partition("@")[0] for each in again}) == len(again)


def _undisturbed(tmp_path: Path) -> tuple[set[str], int, int]:
    """What is to be run, and how many steps and operations of the disk that takes."""
    plain, disk = Lives(_folder(tmp_path, 0)), FaultyDisk()
    run = plain.live(lambda cron: _two_minutes(cron, plain, set()), disk=disk)
    expected = {each.task for each in plain.visits}
    assert len(expected) == 2 + 2 + 4
    return expected, run.steps, disk.operations


def test_a_crash_at_any_step_loses_no_firing_and_doubles_none(tmp_path: Path) -> None:
    """Each step of two minutes is once the last one of its life; then it lives again."""
    expected, steps, _ = _undisturbed(tmp_path)
    for step in range(1, steps + 1):
        _lived_again(Lives(_folder(tmp_path, step)), expected, faults=[crash_at(step)])


def test_a_crash_at_any_write_loses_no_firing_and_doubles_none(tmp_path: Path) -> None:
    """The same with each operation of the disk: it is done, and nothing after it."""
    expected, _, operations = _undisturbed(tmp_path)
    for number in range(1, operations + 1):
        disk = FaultyDisk(at=number, fault=DiskFault.CRASH_AFTER)
        _lived_again(Lives(_folder(tmp_path, number)), expected, disk=disk)


def _folder(tmp_path: Path, number: int) -> Path:
    folder = tmp_path / str(number)
    folder.mkdir()
    return folder

"""Jobs on a virtual clock: what fires, what waits, what is told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from interlock import (
    BlankId,
    CronScheduler,
    DuplicateId,
    FatalError,
    InterlockError,
    InvalidOption,
    NotAnAgent,
    NotRunning,
    Retry,
    ShuttingDown,
    Task,
    TaskContext,
    UnknownTask,
    UsageError,
)
from interlock.patterns.cron import cron_run
from interlock.runtime.log import JsonFormatter, TextFormatter
from interlock.runtime.ports import Ports
from interlock.testing.virtual_run import simulate
from tests.unit.patterns.clocks import MONDAY, ports_from

T = TypeVar("T")
MINUTE = timedelta(minutes=1)


def now() -> datetime:
    return MONDAY + timedelta(seconds=asyncio.get_running_loop().time())


class Diary:
    """An agent that notes when it was at work, and for how long."""

    def __init__(self, seconds: float = 0.0, fails: int = 0) -> None:
        self.began: list[datetime] = []
        self.alive = self.most = 0
        self._seconds = seconds
        self._fails = fails

    @property
    def minutes(self) -> list[float]:
        return [(each - MONDAY) / MINUTE for each in self.began]

    async def run(self, ctx: TaskContext) -> str:
        self.began.append(now())
        self.alive += 1
        self.most = max(self.most, self.alive)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self.alive -= 1
        if len(self.began) <= self._fails:
            raise LookupError("not yet")
        return f"run {len(self.began)}"


def played(main: Callable[[CronScheduler], Awaitable[T]], **options: Any) -> T:
    """What a program does with a scheduler, on Monday at noon."""

    async def program() -> T:
        return await main(CronScheduler(ports=ports_from(MONDAY), **options))

    run = simulate(program)
    value = run.value()
    assert not run.leaked, run.leaked
    assert not run.complaints, run.complaints
    return value


def row(cron: CronScheduler, job_id: str) -> dict[str, Any]:
    return next(each for each in cron.list() if each["job_id"] == job_id)


# Firing


def test_nothing_is_fired_before_the_scheduler_is_entered_nor_after_it_is_left() -> None:
    diary = Diary()

    async def main(cron: CronScheduler) -> None:
        cron.add("job", "* * * * *", diary)
        await asyncio.sleep(150)
        async with cron:
            await asyncio.sleep(100)
        await asyncio.sleep(600)

    played(main)
    assert diary.minutes == [3, 4]


def test_jobs_that_are_due_together_run_in_parallel_and_one_failure_leaves_the_others() -> None:
    slow, broken = Diary(30), Diary(30, fails=1)

    async def main(cron: CronScheduler) -> list[str]:
        for name in "abc":
            cron.add(name, "* * * * *", broken if name == "b" else slow)
        async with cron:
            await asyncio.sleep(100)
            return [row(cron, name)["last_scheduled"]["status"] for name in "abc"]

    assert played(main) == ["success", "error", "success"]
    assert (slow.most, slow.minutes, broken.minutes) == (2, [1, 1], [1])


def test_at_most_so_many_run_at_once_and_nobody_is_left_out() -> None:
    diary = Diary(30)

    async def main(cron: CronScheduler) -> None:
        for number in range(7):
            cron.add(f"job {number}", "0 13 * * *", diary)
        async with cron:
            await asyncio.sleep(3601)
            states = [state for each in cron.list() for state in each["under_way"].values()]
            assert sorted(states) == ["running"] * 5 + ["waiting"] * 2

    played(main)
    assert (diary.most, len(diary.began)) == (5, 7)


def test_a_job_never_overlaps_itself_and_what_falls_due_meanwhile_is_merged() -> None:
    """It takes three and a half minutes: the next one waits for it, and stands for all since."""
    diary = Diary(210)

    async def main(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "* * * * *", diary)
        async with cron:
            await asyncio.sleep(9 * 60 + 30)
            cron.disable("job")
            await asyncio.sleep(0)
            return row(cron, "job")

    told = played(main)
    assert diary.most == 1
    assert diary.minutes == [1, 4.5, 8]
    # Of nine times two have run, one runs, one was waiting and was called off, five were merged.
    assert (told["runs"], told["merged"], told["missed"]) == (3, 5, 0)
    assert [each["status"] for each in told["firings"]] == ["success", "success", "cancelled"]
    assert list(told["under_way"].values()) == ["running"]


def test_a_job_that_may_overlap_itself_does() -> None:
    diary = Diary(210)

    async def main(cron: CronScheduler) -> None:
        cron.add("job", "* * * * *", diary, overlap=True)
        async with cron:
            await asyncio.sleep(250)

    played(main)
    assert diary.minutes == [1, 2, 3, 4]
    assert diary.most == 4


def test_a_backoff_holds_no_slot() -> None:
    flaky, other = Diary(fails=2), Diary(50)

    async def main(cron: CronScheduler) -> list[dict[str, Any]]:
        cron.add("flaky", "0 13 * * *", flaky, retry=Retry(attempts=3, backoff=60, jitter=0))
        cron.add("other", "1 13 * * *", other)
        async with cron:
            await asyncio.sleep(3600 + 300)
            return cron.list()

    rows = played(main, max_concurrent=1)
    assert other.minutes == [61]  # while the first one was between its attempts
    assert flaky.minutes == pytest.approx([60, 61 + 50 / 60, 62 + 50 / 60])
    assert [each["last_scheduled"]["attempts"] for each in rows] == [3, 1]


def test_a_timeout_counts_from_the_start_of_work() -> None:
    diary = Diary(50)

    async def main(cron: CronScheduler) -> list[str]:
        cron.add("a", "0 13 * * *", diary, timeout=60)
        cron.add("b", "0 13 * * *", diary, timeout="1m")
        cron.add("c", "0 13 * * *", diary, timeout=49)
        async with cron:
            await asyncio.sleep(3600 + 200)
            return [each["last_scheduled"]["status"] for each in cron.list()]

    assert played(main, max_concurrent=1) == ["success", "success", "timeout"]


def test_jobs_can_be_added_enabled_disabled_and_removed_while_it_runs() -> None:
    early, late = Diary(), Diary()

    async def main(cron: CronScheduler) -> None:
        cron.add("early", "* * * * *", early)
        cron.add("off", "* * * * *", early, enabled=False)
        async with cron:
            assert row(cron, "early")["next_run"] == MONDAY + MINUTE
            assert row(cron, "off")["next_run"] is None
            await asyncio.sleep(90)
            cron.add("late", "2m", late)
            cron.disable("early")
            await asyncio.sleep(180)
            cron.remove("late")
            cron.enable("early")
            await asyncio.sleep(60)
        assert [each["job_id"] for each in cron.list()] == ["early", "off"]

    played(main)
    # Nothing is owed for the time in which it was disabled.
    assert (early.minutes, late.minutes) == ([1, 5], [3.5])


def test_what_has_not_started_is_called_off_when_its_job_is_disabled_or_removed() -> None:
    slow, never = Diary(90), Diary()

    async def main(cron: CronScheduler) -> dict[str, Any]:
        cron.add("slow", "* * * * *", slow)
        cron.add("disabled", "* * * * *", never)
        cron.add("removed", "* * * * *", never)
        async with cron:
            await asyncio.sleep(61)
            cron.disable("disabled")
            cron.remove("removed")
            cron.disable("slow")
            await asyncio.sleep(120)
            return row(cron, "disabled")

    last = played(main, max_concurrent=1)["last_scheduled"]
    assert never.began == []
    assert (last["status"], last["error"]) == ("cancelled", "the job was disabled")
    assert slow.minutes == [1]  # what runs goes on


def test_a_job_that_was_removed_can_be_added_again() -> None:
    diary = Diary()

    async def main(cron: CronScheduler) -> None:
        async with cron:
            cron.add("job", "* * * * *", diary)
            cron.remove("job")
            cron.add("job", "30s", diary)
            await asyncio.sleep(70)

    played(main)
    assert diary.minutes == [0.5, 1]


def test_what_a_job_changes_takes_nothing_of_the_context_of_that_job() -> None:
    whose = ContextVar("whose", default="nobody's")
    seen: list[str] = []

    async def other() -> None:
        seen.append(whose.get())

    async def main(cron: CronScheduler) -> None:
        async def meddles() -> None:
            whose.set("of the meddling job")
            cron.disable("meddles")

        cron.add("meddles", "1m", meddles)
        cron.add("other", "1m", other)
        whose.set("of the program")
        async with cron:
            await asyncio.sleep(150)

    played(main)
    assert seen == ["of the program", "of the program"]


def test_a_long_life_begins_new_runs_and_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run remembers all its tasks; a scheduler that had only one would grow for ever."""
    monkeypatch.setattr(cron_run, "RENEWED_AFTER", 10)
    diary = Diary(1)

    async def main(cron: CronScheduler) -> tuple[set[str], int]:
        runs = set()
        cron.add("job", "* * * * *", diary)
        cron.add("other", "7m", Diary(5))
        async with cron:
            for _ in range(100):
                await asyncio.sleep(60)
                runs.add(cron.runtime.run_id)
                assert len(cron.runtime.outcomes) <= 12
            return runs, row(cron, "job")["runs"]

    runs, count = played(main)
    assert len(runs) > 8
    assert diary.minutes == list(range(1, 101))
    assert count in (99, 100)


def test_whoever_triggers_without_a_pause_keeps_no_new_run_from_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cron_run, "RENEWED_AFTER", 10)

    async def main(cron: CronScheduler) -> tuple[set[str], dict[str, Any]]:
        runs = set()
        cron.add("job", "1h", Diary())
        async with cron:
            for _ in range(100):
                assert (await cron.trigger("job"))["status"] == "success"
                runs.add(cron.runtime.run_id)
                assert len(cron.runtime.outcomes) <= 10
            return runs, row(cron, "job")

    runs, told = played(main)
    assert len(runs) == 10
    assert (told["last_manual"]["status"], len(told["firings"])) == ("success", 20)


def test_a_run_that_is_never_quiet_keeps_only_the_latest_outcomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cron_run, "RENEWED_AFTER", 10)
    monkeypatch.setattr("interlock.patterns.cron.cron.RENEWED_AFTER", 10)

    async def main(cron: CronScheduler) -> int:
        cron.add("long", "1h", Diary(600))
        cron.add("job", "1h", Diary())
        async with cron:
            long = asyncio.create_task(cron.trigger("long"))
            for _ in range(50):
                await cron.trigger("job")
            assert not long.done()
            kept = len(cron.runtime.outcomes)
            await long
            return kept

    assert played(main) == 10


# Clocks that jump


def jumping(main: Callable[[CronScheduler, list[float]], Awaitable[T]]) -> T:
    """A wall clock that is ahead of the loop's by whatever the program puts into the list."""

    async def program() -> T:
        ahead = [0.0]
        ports = ports_from(MONDAY)
        wall = ports.wall
        cron = CronScheduler(
            ports=Ports(
                wall=lambda: wall() + ahead[0],
                chance=ports.chance,
                backends=ports.backends,
                signals=False,
            )
        )
        return await main(cron, ahead)

    run = simulate(program)
    assert not run.leaked
    return run.value()


def test_a_machine_that_was_suspended_runs_once_what_is_within_the_grace() -> None:
    diary = Diary()

    async def main(cron: CronScheduler, ahead: list[float]) -> dict[str, Any]:
        cron.add("job", "* * * * *", diary, misfire_grace="5m")
        async with cron:
            await asyncio.sleep(90)
            ahead[0] = 3600.0  # the loop has not seen this hour
            await asyncio.sleep(60)
            return row(cron, "job")

    told = jumping(main)
    assert len(diary.began) == 2
    # Of the sixty times it slept through, the last five minutes are one firing.
    assert (told["runs"], told["merged"], told["missed"]) == (2, 5, 55)
    assert told["misses"][0]["first"] == "2026-06-01T12:02:00Z"
    assert told["last_scheduled"]["scheduled_at"] == "2026-06-01T13:02:00Z"


def test_a_clock_that_is_set_is_noticed_within_a_minute() -> None:
    diary = Diary()

    async def main(cron: CronScheduler, ahead: list[float]) -> None:
        cron.add("job", "0 18 * * *", diary)
        async with cron:
            await asyncio.sleep(600)
            ahead[0] = 5 * 3600 + 50 * 60 - 1  # 17:59:59
            await asyncio.sleep(61)

    jumping(main)
    assert len(diary.began) == 1


def test_a_time_that_comes_again_on_a_clock_that_was_set_back_is_not_run_again() -> None:
    diary = Diary()

    async def main(cron: CronScheduler, ahead: list[float]) -> dict[str, Any]:
        cron.add("job", "* * * * *", diary)
        async with cron:
            await asyncio.sleep(90)
            ahead[0] = -60.0
            cron.disable("job")
            cron.enable("job")  # so it counts from now on, and now is half a minute past twelve
            await asyncio.sleep(60)
            return row(cron, "job")

    told = jumping(main)
    assert [each["status"] for each in told["firings"]] == ["success"]
    assert len(diary.began) == 1


def test_a_clock_that_is_set_back_fires_nothing_twice() -> None:
    diary = Diary()

    async def main(cron: CronScheduler, ahead: list[float]) -> dict[str, Any]:
        cron.add("job", "* * * * *", diary)
        async with cron:
            await asyncio.sleep(190)
            ahead[0] = -120.0
            await asyncio.sleep(300)
            return row(cron, "job")

    told = jumping(main)
    names = [each["task_id"] for each in told["firings"]]
    assert len(names) == len(set(names)) == len(diary.began) == 6


@pytest.mark.parametrize("schedule", ["* * * * *", "1m"])
def test_jobs_begin_anew_when_a_clock_that_was_far_ahead_is_put_right(
    schedule: str, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()

    async def main(cron: CronScheduler, ahead: list[float]) -> list[dict[str, Any]]:
        ahead[0] = 365 * 86400.0
        cron.add("job", schedule, diary)
        cron.add("other", "0 0 1 1 *", diary)
        async with cron:
            await asyncio.sleep(190)
            assert row(cron, "job")["set_back"] is None
            ahead[0] = 0.0
            await asyncio.sleep(240)
            return cron.list()

    job, other = jumping(main)
    assert len(diary.began) == 3 + 3  # it is noticed within a minute, at 12:04
    assert job["set_back"] == {"from": "2027-06-01T12:03:00Z", "to": "2026-06-01T12:04:00Z"}
    assert (job["runs"], job["missed"]) == (6, 0)
    assert other["next_run"] == datetime(2027, 1, 1, tzinfo=UTC)
    said = [each for each in caplog.records if each.getMessage() == "cron_clock_set_back"]
    assert [vars(each)["job"] for each in said] == ["job", "other"]


def test_warnings_of_a_job_name_it_in_both_formats_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(cron: CronScheduler, ahead: list[float]) -> None:
        cron.add("nightly", "* * * * *", Diary(), misfire_grace=1)
        async with cron:
            await asyncio.sleep(90)
            ahead[0] = 3600.0
            await asyncio.sleep(120)

    jumping(main)
    missed = [each for each in caplog.records if each.getMessage() == "cron_missed"]
    assert missed
    assert " WARNING cron_missed job=nightly " in TextFormatter().format(missed[0])
    line = json.loads(JsonFormatter().format(missed[0]))
    assert (line["event"], line["job"]) == ("cron_missed", "nightly")


def test_times_that_come_again_on_a_clock_that_is_set_back_by_hours_are_run_again() -> None:
    """Otherwise nothing would run for as long as that."""
    diary = Diary()

    async def main(cron: CronScheduler, ahead: list[float]) -> dict[str, Any]:
        cron.add("job", "* * * * *", diary)
        async with cron:
            await asyncio.sleep(2.5 * 3600)
            ahead[0] = -2 * 3600.0
            await asyncio.sleep(200)
            return row(cron, "job")

    told = jumping(main)
    assert len(diary.began) == 150 + 2  # it is noticed within a minute, at 12:31
    last = told["last_scheduled"]
    assert (last["trigger"], last["scheduled_at"]) == ("schedule", "2026-06-01T12:33:00Z")
    assert last["task_id"] == "cron-job@2026-06-01T12:33:00Z~2"


# By hand


def test_a_trigger_and_a_scheduled_firing_do_not_overwrite_each_others_record() -> None:
    diary = Diary(20)

    async def main(cron: CronScheduler) -> tuple[dict[str, Any], dict[str, Any]]:
        cron.add("job", "* * * * *", diary)
        async with cron:
            await asyncio.sleep(50)
            told = await cron.trigger("job")
            await asyncio.sleep(30)
            return told, row(cron, "job")

    told, listed = played(main)
    assert diary.most == 1  # the scheduled one waited for the one by hand
    assert diary.minutes == pytest.approx([50 / 60, 70 / 60])
    assert told["output"] == "run 1"
    assert (told["trigger"], told["scheduled_at"], told["status"]) == ("manual", None, "success")
    del told["output"]
    assert listed["last_manual"] == told
    assert listed["last_scheduled"]["scheduled_at"] == "2026-06-01T12:01:00Z"
    assert listed["firings"] == [told, listed["last_scheduled"]]
    assert listed["runs"] == 1


def test_a_trigger_runs_a_disabled_job_and_leaves_its_schedule_alone() -> None:
    diary = Diary()

    async def main(cron: CronScheduler) -> None:
        cron.add("job", "* * * * *", diary, enabled=False)
        assert (await cron.trigger("job"))["output"] == "run 1"  # as it is, outside of the block
        async with cron:
            assert (await cron.trigger("job"))["status"] == "success"
            assert (await cron.trigger("job"))["status"] == "success"
            await asyncio.sleep(120)

    played(main)
    assert diary.minutes == [0, 0, 0]


def test_a_batch_has_one_entry_for_each_job_in_order_and_waits_for_slots() -> None:
    good, bad, slow = Diary(10), Diary(fails=9), Diary(500)

    async def main(cron: CronScheduler) -> list[dict[str, Any]]:
        cron.add("slow", "1d", slow)
        cron.add("good", "1d", good)
        batch: list[str | dict[str, Any]] = [
            "slow",
            {"job_id": "bad", "task": bad, "retry": Retry(attempts=2, jitter=0)},
            "good",
            {"job_id": "own", "task": Task("x", good, prompt="hello"), "timeout": 5},
        ]
        return await cron.execute_batch(batch, timeout=100)

    told = played(main, max_concurrent=1)
    assert [(each["job_id"], each["status"]) for each in told] == [
        ("slow", "timeout"),
        ("bad", "error"),
        ("good", "success"),
        ("own", "timeout"),
    ]
    assert told[2]["output"].startswith("run ")
    assert "not yet" in told[1]["error"]
    assert told[1]["attempts"] == 2
    assert good.most == slow.most == 1


def test_a_job_of_a_batch_may_be_a_dict_with_an_id() -> None:
    added, own = Diary(10), Diary(10)

    async def main(cron: CronScheduler) -> list[dict[str, Any]]:
        cron.add("added", "1d", added)
        batch: list[dict[str, Any]] = [{"id": "added"}, {"id": "own", "task": own}]
        told = await cron.execute_batch(batch)
        return told + await cron.execute_batch([{"job_id": "added", "timeout": 5}])

    told = played(main)
    assert [(each["job_id"], each["status"]) for each in told] == [
        ("added", "success"),
        ("own", "success"),
        ("added", "timeout"),
    ]


def test_batches_can_be_repeated_and_run_beside_the_schedule() -> None:
    diary = Diary(1)

    async def main(cron: CronScheduler) -> list[list[dict[str, Any]]]:
        for name in "ab":
            cron.add(name, "1h", diary)
        plain = [await cron.execute_batch(["b", "a"]) for _ in range(2)]
        assert await cron.execute_batch([]) == []
        async with cron:
            return [*plain, *[await cron.execute_batch(["b", "a"]) for _ in range(2)]]

    batches = played(main)
    assert [[each["job_id"] for each in batch] for batch in batches] == [["b", "a"]] * 4
    assert len(diary.began) == 8


def test_fail_fast_cancels_the_siblings() -> None:
    async def main(cron: CronScheduler) -> list[str]:
        jobs = [
            {"job_id": "slow", "task": Diary(100)},
            {"job_id": "bad", "task": Diary(1, fails=1)},
            {"job_id": "other", "task": Diary(100)},
        ]
        told = await cron.execute_batch(jobs, fail_fast=True)
        assert asyncio.get_running_loop().time() == 1
        return [each["status"] for each in told]

    assert played(main) == ["cancelled", "error", "cancelled"]


def test_cancelling_the_caller_cancels_the_work_and_releases_everything() -> None:
    diary = Diary(100)

    async def main(cron: CronScheduler) -> None:
        cron.add("job", "1h", diary)
        async with cron:
            batch = asyncio.create_task(cron.execute_batch(["job"]))
            by_hand = asyncio.create_task(cron.trigger("job"))
            await asyncio.sleep(10)
            batch.cancel()
            by_hand.cancel()
            await asyncio.wait([batch, by_hand])
            assert batch.cancelled()
            assert by_hand.cancelled()
            assert diary.alive == 0
            assert row(cron, "job")["under_way"] == {}
            assert (await cron.trigger("job"))["status"] == "success"

    played(main)
    assert len(diary.began) == 2


def test_one_caller_that_is_cancelled_does_not_disturb_another_outside_of_a_block() -> None:
    async def main(cron: CronScheduler) -> str:
        cron.add("a", "1h", Diary(100))
        cron.add("b", "1h", Diary(100))
        first, second = (asyncio.create_task(cron.trigger(name)) for name in "ab")
        await asyncio.sleep(10)
        first.cancel()
        await asyncio.wait([first])
        assert asyncio.get_running_loop().time() == 10  # nor does it wait for the other
        return str((await second)["status"])

    assert played(main) == "success"


# Leaving


def test_leaving_waits_for_what_is_under_way() -> None:
    diary = Diary(100)

    async def main(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "1m", diary)
        async with cron:
            await asyncio.sleep(125)  # one runs, and one waits for it
        return row(cron, "job")

    told = played(main)
    assert told["runs"] == 2
    assert diary.minutes == pytest.approx([1, 1 + 100 / 60])


def test_leaving_by_an_error_cancels_what_is_under_way() -> None:
    diary = Diary(100)

    async def main(cron: CronScheduler) -> dict[str, Any]:
        cron.add("job", "1m", diary)
        with pytest.raises(LookupError, match="mine"):
            async with cron:
                await asyncio.sleep(125)
                raise LookupError("mine")
        return row(cron, "job")

    told = played(main)
    assert [each["status"] for each in told["firings"]] == ["cancelled", "cancelled"]
    assert diary.alive == 0


def test_a_shutdown_lets_what_runs_finish_then_stops_it_and_takes_no_new_work() -> None:
    quick, stuck = Diary(10), Diary(1000)

    async def main(cron: CronScheduler) -> list[str]:
        cron.add("quick", "1m", quick)
        cron.add("stuck", "1m", stuck)
        async with cron:
            forever = asyncio.create_task(cron.run_forever())
            await asyncio.sleep(65)
            await cron.shutdown(timeout=20)
            assert asyncio.get_running_loop().time() < 90
            await forever
            await cron.shutdown()
            with pytest.raises(ShuttingDown):
                await cron.trigger("quick")
            with pytest.raises(ShuttingDown):
                await cron.execute_batch(["quick"])
        return [each["last_scheduled"]["status"] for each in cron.list()]

    assert played(main) == ["success", "cancelled"]
    assert (len(quick.began), len(stuck.began)) == (1, 1)


def test_a_fatal_error_of_one_job_is_raised_when_all_have_ended() -> None:
    other = Diary(10)

    def fatal() -> None:
        raise MemoryError("no more")

    async def main(cron: CronScheduler) -> None:
        cron.add("fatal", "1m", fatal)
        cron.add("other", "1m", other)
        with pytest.raises(FatalError):
            async with cron:
                await asyncio.sleep(61)
        assert [each["last_scheduled"]["status"] for each in cron.list()] == ["error", "success"]

    played(main)


def test_run_forever_raises_what_stops_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def after(self, moment: float) -> float:
            raise ArithmeticError("this clock is broken")

    async def main(cron: CronScheduler) -> None:
        cron.add("job", "1m", Diary())
        async with cron:
            cron._jobs._schedules["job"] = Broken()
            with pytest.raises(ArithmeticError):
                await cron.run_forever()

    with caplog.at_level(logging.ERROR, "interlock"):
        played(main)
    assert "cron_stopped" in caplog.messages


def test_a_firing_that_the_run_refuses_is_told_and_the_others_go_on() -> None:
    diary = Diary()

    async def main(cron: CronScheduler) -> dict[str, Any]:
        cron.add("big", "1m", Task("x", diary, uses="gpu=2"))
        cron.add("small", "1m", Task("x", diary, uses="gpu"))
        async with cron:
            cron.runtime.set_capacity("gpu", 1)
            await asyncio.sleep(61)
            return row(cron, "big")

    told = played(main, capacity={"gpu": 2})
    assert told["last_scheduled"]["status"] == "error"
    assert "ImpossibleClaim" in told["last_scheduled"]["error"]
    assert len(diary.began) == 1


# Claims, why, events


def test_why_tells_what_a_firing_waits_for_and_events_tell_of_all() -> None:
    async def main(cron: CronScheduler) -> tuple[str, str, list[str]]:
        cron.add("job", "1m", Diary(100))
        cron.add("disk", "1m", Task("x", Diary(100), writes="out/"))
        cron.add("paper", "90s", Task("x", Diary(), writes="out/report.md"))
        told: list[str] = []
        async with cron:
            cron.runtime.listen(lambda event: told.append(f"{event.kind} {event.task_id}"))
            await asyncio.sleep(121)
            (waits,) = [n for n, s in row(cron, "job")["under_way"].items() if s == "waiting"]
            (paper,) = row(cron, "paper")["under_way"]
            return str(cron.runtime.why(waits)), str(cron.runtime.why(paper)), told

    own, claim, told = played(main)
    assert "cron:job" in own
    assert "cron-job@2026-06-01T12:01:00Z" in own
    assert "out/" in claim
    assert "cron-disk@2026-06-01T12:01:00Z" in claim
    assert "started cron-job@2026-06-01T12:01:00Z" in told


def test_a_task_brings_its_prompt_arguments_and_options() -> None:
    seen: list[Any] = []

    async def agent(ctx: TaskContext, number: int, word: str) -> None:
        seen.append((ctx.prompt, number, word, ctx.task.timeout, ctx.task.priority))

    async def main(cron: CronScheduler) -> None:
        task = Task("x", agent, prompt="go", args=[7], kwargs={"word": "w"}, timeout=5, priority=3)
        cron.add("job", "1m", task, timeout=300)
        async with cron:
            await asyncio.sleep(61)

    played(main)
    assert seen == [("go", 7, "w", 5.0, 3)]


# Errors of use


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"id": " "}, BlankId),
        ({"id": 3}, BlankId),
        ({"schedule": "never"}, InvalidOption),
        ({"schedule": "10000000000000h"}, InvalidOption),
        ({"enabled": "no"}, InvalidOption),
        ({"overlap": "no"}, InvalidOption),
        ({"task": 7}, NotAnAgent),
        ({"task": "tidy up, please"}, InvalidOption),
        ({"task": lambda a, b: None}, NotAnAgent),
        ({"task": Task("x", print, key="k")}, InvalidOption),
        ({"task": Task("x", print, after=["y"])}, InvalidOption),
        ({"timeout": -1}, InvalidOption),
        ({"misfire_grace": "soon"}, InvalidOption),
        ({"timezone": "Mars/Olympus"}, InvalidOption),
        ({"retry": 3}, InvalidOption),
        ({"id": "there"}, DuplicateId),
    ],
)
def test_what_is_wrong_with_a_job_raises_when_it_is_added_and_names_it(
    change: dict[str, Any], error: type[InterlockError]
) -> None:
    cron = CronScheduler()
    cron.add("there", "1h", print)
    options: dict[str, Any] = {"id": "job", "schedule": "1h", "task": print, **change}
    args = [options.pop(name) for name in ("id", "schedule", "task")]
    with pytest.raises(error) as refused:
        cron.add(*args, **options)
    assert repr(args[0]) in str(refused.value)
    assert [each["job_id"] for each in cron.list()] == ["there"]


def test_claims_that_cannot_be_are_refused_before_anything_is_fired() -> None:
    async def main(cron: CronScheduler) -> None:
        cron.add("ok", "1m", Diary())
        cron.add("out", "1m", Task("x", Diary(), writes="../../elsewhere"))
        with pytest.raises(InterlockError, match="'out'"):
            async with cron:
                raise AssertionError("it must not begin")

    async def later(cron: CronScheduler) -> None:
        async with cron:
            with pytest.raises(InterlockError, match="'out'"):
                cron.add("out", "1m", Task("x", Diary(), writes="../../elsewhere"))
            assert cron.list() == []

    played(main)
    played(later)


@pytest.mark.parametrize(
    ("batch", "error", "says"),
    [
        (["job", "nobody"], UnknownTask, "nobody"),
        (["job", "job"], DuplicateId, "'job'"),
        (["job", {"job_id": "", "task": print}], BlankId, "job_id"),
        (["job", {"job_id": "x"}], InvalidOption, "'x'"),
        (["job", {"job_id": "x", "task": print, "schedule": "1h"}], InvalidOption, "schedule"),
        (["job", {"job_id": "x", "task": 3}], NotAnAgent, "'x'"),
        (["job", 3], UnknownTask, "3"),
        ("job", InvalidOption, "list"),
        (7, InvalidOption, "list"),
    ],
)
def test_a_batch_is_checked_before_anything_starts(
    batch: Any, error: type[InterlockError], says: str
) -> None:
    diary = Diary()

    async def main(cron: CronScheduler) -> None:
        cron.add("job", "1h", diary)
        with pytest.raises(error, match=says):
            await cron.execute_batch(batch)
        with pytest.raises(InvalidOption, match="timeout"):
            await cron.execute_batch(["job"], timeout=-1)

    played(main)
    assert diary.began == []


def test_unknown_jobs_are_errors_everywhere() -> None:
    async def main(cron: CronScheduler) -> None:
        for act in (cron.enable, cron.disable, cron.remove):
            with pytest.raises(UnknownTask, match="'nobody'"):
                act("nobody")
        with pytest.raises(UnknownTask, match="'nobody'"):
            await cron.trigger("nobody")
        with pytest.raises(NotRunning):
            await cron.run_forever()
        with pytest.raises(NotRunning):
            _ = cron.runtime

    played(main)
    with pytest.raises(UsageError, match="max_concurrent is 0"):
        CronScheduler(max_concurrent=0)


def test_a_scheduler_is_entered_once() -> None:
    async def main(cron: CronScheduler) -> None:
        async with cron:
            with pytest.raises(NotRunning, match="once"):
                await cron.__aenter__()
        with pytest.raises(NotRunning, match="once"):
            await cron.__aenter__()

    played(main)


@pytest.mark.parametrize(
    "config", [{"timezone": "Asia/Tokyo"}, type("C", (), {"timezone": "Asia/Tokyo"})]
)
def test_the_configuration_can_have_a_time_zone_for_jobs_that_bring_none(config: Any) -> None:
    cron = CronScheduler(config)
    cron.add("there", "0 3 * * *", print)
    cron.add("here", "0 3 * * *", print, timezone="UTC")
    assert [each["timezone"] for each in cron.list()] == ["Asia/Tokyo", "UTC"]


def test_the_moments_it_tells_are_in_utc() -> None:
    async def main(cron: CronScheduler) -> Any:
        cron.add("job", "0 7 * * *", Diary(), timezone="Asia/Tokyo")
        async with cron:
            return row(cron, "job")["next_run"]

    assert played(main) == datetime(2026, 6, 1, 22, tzinfo=UTC)

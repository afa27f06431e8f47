"""A scheduler and other threads: what is not awaited can be called from each of them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from interlock import CronScheduler, DuplicateId, UnknownTask, UsageError
from interlock.runtime.ports import Ports


def idle() -> None:
    """A job that is never due here."""


def listed(cron: CronScheduler) -> list[tuple[str, bool]]:
    return [(each["job_id"], each["enabled"]) for each in cron.list()]


async def test_a_job_in_a_thread_disables_itself_and_the_clock_goes_on() -> None:
    ticks: asyncio.Queue[None] = asyncio.Queue()

    async def tick() -> None:
        ticks.put_nowait(None)

    def once() -> list[tuple[str, bool]]:
        cron.disable("once")
        return listed(cron)

    # A tenth of a second before the first time.
    zero = 1_780_000_000.9 - time.monotonic()
    cron = CronScheduler(ports=Ports(wall=lambda: zero + time.monotonic()))
    cron.add("once", "* * * * * *", once)
    cron.add("tick", "* * * * * *", tick)
    async with cron:
        for _ in range(2):
            await ticks.get()
        (told,) = [each for each in cron.list() if each["job_id"] == "once"]
    assert (told["enabled"], told["runs"]) == (False, 1)
    assert told["last_scheduled"]["status"] == "success"


async def test_what_is_said_in_a_thread_is_done_and_written_down(tmp_path: Path) -> None:
    def says() -> list[tuple[str, bool]]:
        cron.add("new", "1h", idle)
        cron.disable("off")
        cron.disable("on")
        cron.enable("on")
        cron.remove("gone")
        with pytest.raises(DuplicateId):
            cron.add("new", "1h", idle)
        with pytest.raises(UnknownTask):
            cron.enable("nobody")
        return listed(cron)

    cron = CronScheduler(journal=tmp_path / "cron.db")
    for name in ("on", "off", "gone", "later"):
        cron.add(name, "1h", idle)
    async with cron:
        expected = [("on", True), ("off", False), ("later", True), ("new", True)]
        assert await asyncio.to_thread(says) == listed(cron) == expected
        assert all(each["next_run"] for each in cron.list() if each["enabled"])
        cron.disable("later")  # and so is what is said here after it
        book = cron.runtime.records("cron")
        switched = {"on": "enabled", "off": "disabled", "gone": "removed", "later": "disabled"}
        while {name: (book.get(name) or {}).get("switched") for name in switched} != switched:
            await asyncio.sleep(0)


async def test_another_thread_can_be_first_and_last() -> None:
    cron = CronScheduler()
    await asyncio.to_thread(cron.add, "job", "1h", idle)
    async with cron:
        await asyncio.to_thread(cron.disable, "job")
    await asyncio.to_thread(cron.enable, "job")
    assert await asyncio.to_thread(listed, cron) == [("job", True)]


async def test_an_event_loop_of_another_thread_cannot_run_jobs_of_this_one() -> None:
    def elsewhere() -> None:
        calls: list[Any] = [cron.trigger("job"), cron.shutdown(), cron.flush()]
        for each in calls:
            with pytest.raises(UsageError, match="another event loop"):
                asyncio.run(each)

    cron = CronScheduler()
    cron.add("job", "1h", idle)
    async with cron:
        await asyncio.to_thread(elsewhere)
        assert (await cron.trigger("job"))["status"] == "success"

"""The scheduler on the deterministic loop: many jobs, claims, cancellations and changes of mind."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from interlock import CronScheduler, Event, Kind, Retry, Task, TaskContext, conflicts, write
from interlock.testing.virtual_run import simulate
from tests.unit.patterns.clocks import MONDAY, ports_from

SLOTS = 3
FILES = ("src/", "src/a.py", "docs/**", "docs/x.md", "*.toml", "setup.toml")
HOURS = 1


class World:
    """What agents see of each other."""

    def __init__(self) -> None:
        self.alive: dict[str, tuple[str, str]] = {}
        self.began: Counter[tuple[str, int]] = Counter()

    def enter(self, ctx: TaskContext, job_id: str, files: str) -> None:
        for other, theirs in self.alive.values():
            assert other != job_id, "a job overlaps itself"
            assert not conflicts(write(files), write(theirs)), (files, theirs)
        self.alive[ctx.task.id] = (job_id, files)
        self.began[ctx.task.id, ctx.attempt] += 1
        assert len(self.alive) <= SLOTS


def job(world: World, chance: Random, job_id: str) -> Task:
    files = chance.choice(FILES)
    longest = chance.choice((1, 30, 400))

    async def work(ctx: TaskContext) -> str:
        world.enter(ctx, job_id, files)
        try:
            await asyncio.sleep(chance.random() * longest)
            if chance.random() < 0.3:
                raise LookupError(ctx.task.id)
            if chance.random() < 0.1:
                await asyncio.sleep(10_000)
            return ctx.task.id
        finally:
            with suppress(asyncio.CancelledError):  # it takes its time to go, and holds on
                await asyncio.sleep(chance.choice((0, 0, 2)))
            del world.alive[ctx.task.id]

    retry = Retry(attempts=chance.randint(1, 3), backoff=5)
    return Task(job_id, work, writes=files, retry=retry)


async def batches(cron: CronScheduler, chance: Random, ids: list[str]) -> None:
    """Somebody who runs jobs by hand, and at times loses patience."""
    while True:
        await asyncio.sleep(chance.random() * 900)
        wanted = chance.sample(ids, chance.randint(1, 3))
        patience = chance.choice((None, 0.0, 20.0))
        try:
            async with asyncio.timeout(patience):
                told = await cron.execute_batch(wanted, fail_fast=chance.random() < 0.3)
        except TimeoutError:
            continue
        assert [each["job_id"] for each in told] == wanted
        assert all(each["status"] in ("success", "error", "timeout", "cancelled") for each in told)


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_every_time_is_accounted_for_and_nothing_is_left(seed: int) -> None:
    chance = Random(seed)
    world = World()
    submitted: Counter[str] = Counter()
    settled: Counter[str] = Counter()

    def heard(event: Event) -> None:
        if event.kind is Kind.SUBMITTED:
            submitted[event.task_id] += 1
        if event.kind is Kind.SETTLED:
            settled[event.task_id] += 1

    async def main() -> list[dict[str, Any]]:
        cron = CronScheduler(max_concurrent=SLOTS, ports=ports_from(MONDAY, seed), grace=5)
        ids = [f"job-{number}" for number in range(6)]
        for number, job_id in enumerate(ids):
            schedule = ("* * * * *", "*/5 * * * *", "90s", "20 * * * *", "7m", "*/10 * * * * *")
            cron.add(job_id, schedule[number], job(world, chance, job_id), timeout=200)
        async with cron:
            cron.runtime.listen(heard)
            somebody = asyncio.create_task(batches(cron, chance, ids))
            await asyncio.sleep(HOURS * 3600 / 2)
            for name in row(cron, "job-0")["under_way"]:
                assert cron.runtime.why(name).task_id == name
            cron.disable("job-3")
            cron.remove("job-4")
            await asyncio.sleep(HOURS * 3600 / 2)
            somebody.cancel()
            await asyncio.wait([somebody])
            cron.disable("job-5")
        assert not world.alive
        return cron.list()

    run = simulate(main, seed=seed, max_steps=1_000_000)
    rows = {each["job_id"]: each for each in run.value()}
    assert not run.leaked, run.leaked
    assert not run.complaints, run.complaints
    assert set(world.began.values()) == {1}
    assert submitted == settled
    assert set(settled.values()) == {1}
    due = {"job-0": HOURS * 60, "job-1": HOURS * 12, "job-2": HOURS * 40}
    for job_id, times in due.items():
        told = rows[job_id]
        # The last moment of the hour is that in which it is left: it may see it or not.
        assert told["runs"] + told["merged"] in (times - 1, times), job_id
        assert told["missed"] == 0
        assert told["under_way"] == {}
    assert "job-4" not in rows


def row(cron: CronScheduler, job_id: str) -> dict[str, Any]:
    return next(each for each in cron.list() if each["job_id"] == job_id)


@pytest.mark.parametrize("seed", range(10))
def test_cancelled_at_any_moment_it_leaves_nothing_behind(seed: int) -> None:
    chance = Random(seed)
    world = World()

    async def program() -> None:
        cron = CronScheduler(max_concurrent=SLOTS, ports=ports_from(MONDAY, seed), grace=5)
        for number in range(4):
            cron.add(f"job-{number}", "* * * * *", job(world, chance, f"job-{number}"))
        async with cron:
            await cron.run_forever()

    async def main() -> None:
        running = asyncio.create_task(program())
        await asyncio.sleep(chance.random() * 600)
        running.cancel()
        await asyncio.sleep(chance.random())
        running.cancel()  # and again, while it is being left
        await asyncio.wait([running])
        assert running.cancelled()
        assert not world.alive

    run = simulate(main, seed=seed)
    run.value()
    assert not run.leaked
    assert not run.complaints
    assert timedelta(seconds=run.time) < timedelta(minutes=11)

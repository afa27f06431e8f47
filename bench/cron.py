"""What a firing of the scheduler costs over a task of the bare runtime."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from bench.figure import Figure
from interlock import CronScheduler, Runtime, Task, uses

ROUNDS = 9
SIZE = 2_000
SLOTS = 5


async def noop() -> None:
    pass


def measure() -> Iterator[Figure]:
    batch, due, bare = [], [], []
    for _ in range(ROUNDS):
        bare.append(asyncio.run(_bare()))
        batch.append(asyncio.run(_batch()))
        due.append(asyncio.run(_due_together()))
    yield Figure("cron: a task of the bare runtime", median(bare), unit="µs per task")
    for name, times in (("a job of a batch", batch), ("a scheduled firing", due)):
        yield Figure(f"cron: {name}", median(times), unit="µs per task")
        ratio = median(a / b for a, b in zip(times, bare, strict=True))
        yield Figure(f"cron: {name}, against the bare runtime", ratio, 1.3, "×")


async def _bare() -> float:
    """The same tasks, made and awaited by hand."""
    claims = [uses(f"cron:{number}", exclusive=True) for number in range(SIZE)]
    async with Runtime(SLOTS) as rt:
        gc.collect()
        began = perf_counter()
        tasks = [
            Task(f"cron-{number}@now", noop, claims=(claim,), timeout=300)
            for number, claim in enumerate(claims)
        ]
        for handle in rt.submit_all(tasks):
            await handle
        return (perf_counter() - began) / SIZE * 1e6


async def _batch() -> float:
    cron = _with_jobs()
    async with cron:
        gc.collect()
        began = perf_counter()
        await cron.execute_batch([str(number) for number in range(SIZE)])
        return (perf_counter() - began) / SIZE * 1e6


async def _due_together() -> float:
    """All jobs at the same moment, which has come when the clock says so."""
    cron = _with_jobs()
    async with cron:
        clock, now = cron._clock, cron._clock.now()
        gc.collect()
        clock.now = lambda: now + 3600.5
        began = perf_counter()
        clock.wake()
        await cron._firings.settled()
        return (perf_counter() - began) / SIZE * 1e6


def _with_jobs() -> CronScheduler:
    cron = CronScheduler(max_concurrent=SLOTS)
    for number in range(SIZE):
        cron.add(str(number), "1h", noop)
    return cron

"""P1: the whole runtime on a queue of no-op tasks with two claims each, against bare asyncio."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from bench import plain_asyncio
from bench.figure import Figure
from interlock import Runtime, Task, write

SIZES = (30_000, 100_000)
SLOTS = 100
ROUNDS = 5


def measure() -> Iterator[Figure]:
    for size in SIZES:
        ours, bare = [], []
        for _ in range(ROUNDS):
            bare.append(_with_collected(plain_asyncio.queue(size, SLOTS)))
            ours.append(_with_collected(_queue(_tasks(size))))
        per_task = 1e6 / size
        yield Figure(f"P1 {size:,} queued", median(ours) * per_task, unit="µs per task")
        yield Figure(f"P1 {size:,} asyncio", median(bare) * per_task, unit="µs per task")
        ratio = median(a / b for a, b in zip(ours, bare, strict=True))
        # At least half the rate is at most twice the time.
        yield Figure(f"P1 {size:,} against asyncio without claims", ratio, 2.0, "×")


def _with_collected(run: Coroutine[Any, Any, float]) -> float:
    gc.collect()
    return asyncio.run(run)


async def _queue(tasks: list[Task]) -> float:
    """Seconds from submission to the last outcome; the records of the tasks are there before."""
    async with Runtime(max_parallel=SLOTS) as runtime:
        began = perf_counter()
        result = await runtime.run(tasks)
        spent = perf_counter() - began
    assert result.all_succeeded
    return spent


def _tasks(count: int) -> list[Task]:
    chance = Random(count)
    files = [write(f"f{number}") for number in range(1_000)]
    return [
        Task(f"t{number}", plain_asyncio.noop, claims=chance.sample(files, 2))
        for number in range(count)
    ]

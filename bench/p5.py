"""P5: durable runs, 100 in flight, against the fsyncs of this disk and against runs in memory."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Literal

from bench import p5_store
from bench.figure import Figure
from bench.plain_asyncio import noop
from interlock import Runtime, Task

IN_FLIGHT = 100
TASKS = 3_000
ROUNDS = 5


def measure() -> Iterator[Figure]:
    # In the working folder: a temporary one may be in memory, where fsync costs nothing.
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        yield from _runs(Path(folder))
    yield from p5_store.measure()


def _runs(folder: Path) -> Iterator[Figure]:
    fsync, full, normal, memory = [], [], [], []
    for number in range(ROUNDS):
        gc.collect()
        fsync.append(p5_store._fsync(folder / "fsync"))
        full.append(asyncio.run(_run(folder / f"full{number}.db", "full")))
        normal.append(asyncio.run(_run(folder / f"normal{number}.db", "normal")))
        memory.append(asyncio.run(_run(None, "full")))
    yield Figure("P5 run FULL, 100 in flight", median(full) * 1e6, unit="µs per task")
    yield Figure("P5 run NORMAL, 100 in flight", median(normal) * 1e6, unit="µs per task")
    yield Figure("P5 run in memory", median(memory) * 1e6, unit="µs per task")
    # At least five tasks per fsync is at most a fifth of an fsync per task.
    ratio = median(a / b for a, b in zip(full, fsync, strict=True))
    yield Figure("P5 run FULL, fsyncs per task", ratio, 0.2, "×")
    # At least half the rate is at most twice the time.
    against = median(a / b for a, b in zip(normal, memory, strict=True))
    yield Figure("P5 run NORMAL against memory", against, 2.0, "×")
    yield from _resuming(folder / "full0.db")


async def _run(journal: Path | None, durability: Literal["full", "normal"]) -> float:
    """Seconds per task from the first submission to the last outcome."""
    tasks = [Task(f"t{number}", noop) for number in range(TASKS)]
    async with Runtime(IN_FLIGHT, journal=journal, durability=durability) as runtime:
        began = perf_counter()
        result = await runtime.run(tasks)
        spent = perf_counter() - began
    assert result.all_succeeded
    return spent / TASKS


def _resuming(journal: Path) -> Iterator[Figure]:
    """A closed run, gone on from: all its successes are inherited."""
    began = perf_counter()
    asyncio.run(_again(journal))
    spent = perf_counter() - began
    yield Figure("P5 inheriting a success", spent / TASKS * 1e6, unit="µs per task")


async def _again(journal: Path) -> None:
    tasks = [Task(f"t{number}", noop) for number in range(TASKS)]
    async with Runtime(IN_FLIGHT, journal=journal, resume=True) as runtime:
        assert (await runtime.run(tasks)).all_succeeded

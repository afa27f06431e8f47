"""Flat: memory of a long-lived Runtime that keeps 1,000 outcomes, over a million no-op tasks.

Growth is counted from 200,000 tasks on: by then the windows are full in which a run remembers the
latest events (100,000) and ids (11,000).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figure import Figure
from interlock import Runtime

TASKS = 1_000_000
STEP = 100_000
FULL = 200_000
"""From here on nothing may grow."""
BATCH = 1_000
DURABLE_TASKS = 60_000
"""With a journal on disk a task takes longer; there growth is counted from the half on."""


def measure() -> Iterator[Figure]:
    sampled = asyncio.run(_sampled(TASKS, STEP))
    grown = sampled[TASKS] - sampled[FULL]
    yield Figure("flat: memory at 200,000 tasks", sampled[FULL] / 2**20, unit="MiB")
    yield Figure("flat: growth to 1,000,000 tasks", grown / 2**20, 5, "MiB")
    yield Figure("flat: growth for each task", grown / (TASKS - FULL), unit="bytes")
    with TemporaryDirectory() as folder:
        half = DURABLE_TASKS // 2
        sampled = asyncio.run(_sampled(DURABLE_TASKS, half, Path(folder) / "journal"))
    each = (sampled[DURABLE_TASKS] - sampled[half]) / half
    yield Figure("flat: growth for each task, with a journal", each, unit="bytes")


async def _sampled(tasks: int, step: int, journal: Path | None = None) -> dict[int, int]:
    """Resident bytes of this process after so many tasks."""
    sampled = {}
    async with Runtime(8, journal=journal, durability="normal", max_outcomes=1_000) as runtime:
        for done in range(BATCH, tasks + 1, BATCH):
            await runtime.map(_noop, range(BATCH))
            if done % step == 0:
                gc.collect()
                sampled[done] = _resident()
    return sampled


async def _noop(_item: int) -> None:
    """An agent that does nothing."""


def _resident() -> int:
    return int(import_module("psutil").Process().memory_info().rss)

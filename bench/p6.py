"""P6: from the end of one agent to the first line of the one that waited for it, 100,000 queued."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Iterator
from time import perf_counter

from bench.figure import Figure
from interlock import Runtime, Task, uses

QUEUED = 100_000
RESOURCES = 100
RELEASES = 5_000


def measure() -> Iterator[Figure]:
    gaps = sorted(asyncio.run(_gaps()))
    yield Figure("P6 start after release, median", 1e3 * gaps[len(gaps) // 2], unit="ms")
    yield Figure("P6 start after release, p99", 1e3 * gaps[len(gaps) * 99 // 100], 1.0, "ms")
    yield Figure("P6 start after release, worst", 1e3 * gaps[-1], unit="ms")


async def _gaps() -> list[float]:
    """Every task holds its resource until it is told to end, one after another."""
    running: deque[asyncio.Future[None]] = deque()
    gaps: list[float] = []
    released = 0.0

    async def hold() -> None:
        nonlocal released
        if released:
            gaps.append(perf_counter() - released)
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        running.append(told)
        await told
        released = perf_counter()

    things = [uses(f"thing-{number}", exclusive=True) for number in range(RESOURCES)]
    tasks = [Task(f"t{n}", hold, claims=[things[n % RESOURCES]]) for n in range(QUEUED)]
    async with Runtime(max_parallel=RESOURCES) as runtime:
        all_of_them = asyncio.ensure_future(_run(runtime, tasks))
        while len(running) < RESOURCES:
            await asyncio.sleep(0)
        gc.collect()
        for _ in range(RELEASES):
            running.popleft().set_result(None)
            started = len(gaps) + 1
            while len(gaps) < started:
                await asyncio.sleep(0)
        all_of_them.cancel()
        await asyncio.wait([all_of_them])
    return gaps


async def _run(runtime: Runtime, tasks: list[Task]) -> None:
    await runtime.run(tasks)

"""P4: memory of a queued task, with its record and its handle, and the kernel's share of it."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from random import Random

from bench.figure import Figure
from bench.plain_asyncio import noop
from interlock import Runtime, Task, write
from interlock.kernel.kernel import Kernel
from interlock.kernel.stimuli import Submit

QUEUED = 100_000


def measure() -> Iterator[Figure]:
    yield Figure("P4 a queued task, all in all", asyncio.run(_all_in_all()), 1000, "bytes")
    tasks = _tasks()
    kernel = Kernel(slots=1)
    with _Traced() as traced:
        kernel.handle(Submit(tuple(tasks)), 0.0)
    yield Figure("P4 the kernel's share", traced.bytes / QUEUED, 400, "bytes")


async def _all_in_all() -> float:
    async with Runtime(max_parallel=1) as runtime:
        runtime.pause()
        with _Traced() as traced:
            waiting = asyncio.ensure_future(_run(runtime))
            while runtime.progress().waiting < QUEUED:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    return traced.bytes / QUEUED


async def _run(runtime: Runtime) -> None:
    await runtime.run(_tasks())


def _tasks() -> list[Task]:
    chance = Random(QUEUED)
    files = [write(f"f{number}") for number in range(1_000)]
    return [Task(f"t{number}", noop, claims=chance.sample(files, 2)) for number in range(QUEUED)]


class _Traced:
    """How much more memory Python has in use at the end of a block."""

    bytes = 0

    def __enter__(self) -> _Traced:
        gc.collect()
        tracemalloc.start()
        return self

    def __exit__(self, *_error: object) -> None:
        gc.collect()
        self.bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()

"""The baseline: what asyncio itself takes for tasks that claim nothing."""

from __future__ import annotations

import asyncio
from time import perf_counter


async def noop() -> None:
    """The agent that all measurements run."""


async def queue(count: int, slots: int) -> float:
    """Seconds for `count` no-op tasks in a TaskGroup, at most `slots` at once."""
    slot = asyncio.Semaphore(slots)

    async def one() -> None:
        async with slot:
            await noop()

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())
    return perf_counter() - began


async def chain(length: int) -> float:
    """Seconds for a chain of tasks, each of which waits for the one before."""

    async def step(before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await noop()

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        last: asyncio.Task[None] | None = None
        for _ in range(length):
            last = group.create_task(step(last))
    return perf_counter() - began


async def hand_over(times: int) -> float:
    """Seconds for one lock to go from task to task."""
    lock = asyncio.Lock()

    async def one() -> None:
        async with lock:
            await asyncio.sleep(0)  # or nobody would ever have to wait

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(times):
            group.create_task(one())
    return perf_counter() - began

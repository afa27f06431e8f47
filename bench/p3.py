"""P3: a chain of dependent tasks, and one resource that goes from task to task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from time import perf_counter

from bench import plain_asyncio
from bench.figure import Figure
from interlock import Runtime, Task, uses

HOPS = 1_000
ROUNDS = 15


def measure() -> Iterator[Figure]:
    yield from _compare("chain of 1,000", _chain, plain_asyncio.chain)
    yield from _compare("hand-over 1,000 times", _hand_over, plain_asyncio.hand_over)


def _compare(
    name: str,
    ours: Callable[[int], Awaitable[float]],
    bare: Callable[[int], Awaitable[float]],
) -> Iterator[Figure]:
    pairs = [(_run(ours(HOPS)), _run(bare(HOPS))) for _ in range(ROUNDS)]
    yield Figure(f"P3 {name}", median(a for a, _ in pairs) * 1e6 / HOPS, unit="µs per hop")
    yield Figure(f"P3 {name}, asyncio", median(b for _, b in pairs) * 1e6 / HOPS, unit="µs per hop")
    yield Figure(f"P3 {name} against asyncio", median(a / b for a, b in pairs), 5.0, "×")


def _run(main: Awaitable[float]) -> float:
    async def run() -> float:
        return await main

    return asyncio.run(run())


async def _chain(length: int) -> float:
    tasks = [
        Task(f"t{number}", plain_asyncio.noop, after=f"t{number - 1}" if number else ())
        for number in range(length)
    ]
    return await _spent(tasks)


async def _hand_over(times: int) -> float:
    baton = uses("baton", exclusive=True)
    return await _spent(
        [Task(f"t{number}", plain_asyncio.noop, claims=[baton]) for number in range(times)]
    )


async def _spent(tasks: list[Task]) -> float:
    async with Runtime(max_parallel=100) as runtime:
        began = perf_counter()
        result = await runtime.run(tasks)
        spent = perf_counter() - began
    assert result.all_succeeded
    return spent

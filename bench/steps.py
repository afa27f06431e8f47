"""The step scheduler against the bare runtime, and what a call through the limiter costs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from bench.figure import Figure
from interlock import LLMLimiter, Runtime, Task, TaskScheduler

ROUNDS = 7
SIZE = 2_000
SLOTS = 4


class Agent:
    def __init__(self, role: str) -> None:
        self.role = role

    def run_step(self) -> str:
        return self.role


AGENTS = [Agent(f"a{number}") for number in range(SIZE)]
ROLES = [each.role for each in AGENTS]


def measure() -> Iterator[Figure]:
    spent: list[float] = []
    bare: list[float] = []
    for _ in range(ROUNDS):
        for measured, times in ((_bare, bare), (_scheduler, spent)):
            gc.collect()
            times.append(asyncio.run(measured()))
    yield Figure("scheduler run()", median(spent) / SIZE * 1e6, unit="µs per task")
    ratio = median(a / b for a, b in zip(spent, bare, strict=True))
    yield Figure("scheduler run(): against the bare runtime", ratio, 1.3, "×")
    yield Figure("limiter call()", median(_calls()) / SIZE * 1e6, unit="µs per call")
    yield Figure("limiter call_sync()", median(_calls_sync()) / SIZE * 1e6, unit="µs per call")


async def _scheduler() -> float:
    async with TaskScheduler(SLOTS) as scheduler:
        began = perf_counter()
        results = await scheduler.run(AGENTS)
        spent = perf_counter() - began
    assert results == ROLES
    return spent


async def _bare() -> float:
    """With the making of the tasks, since the scheduler makes them too."""
    async with Runtime(SLOTS, order="first_come") as runtime:
        began = perf_counter()
        tasks = [Task(each.role, each.run_step, timeout=120.0) for each in AGENTS]
        result = await runtime.run(tasks)
        spent = perf_counter() - began
    assert [each.result for each in result] == ROLES
    return spent


async def _called(limiter: LLMLimiter) -> float:
    async def noop() -> None:
        pass

    began = perf_counter()
    for _ in range(SIZE):
        await limiter.call(noop)
    return perf_counter() - began


def _calls() -> Iterator[float]:
    for _ in range(ROUNDS):
        yield asyncio.run(_called(LLMLimiter(1e9)))


def _calls_sync() -> Iterator[float]:
    for _ in range(ROUNDS):
        limiter = LLMLimiter(1e9)
        began = perf_counter()
        for _ in range(SIZE):
            limiter.call_sync(int)
        yield perf_counter() - began

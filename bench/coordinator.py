"""What the coordinator costs over the bare runtime: the same tasks and claims, made by hand."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

from bench.figure import Figure
from interlock import ParallelAgentCoordinator, Retry, Runtime, SubTask, Task, TaskContext, uses
from interlock.runtime.hosting.host import RuntimeHost

ROUNDS = 7
SIZE = 2_000
SLOTS = 5
CONFIG = {"max_parallel_agents": SLOTS}
PARENT = {"id": "T", "title": "a task", "description": "with many parts"}
PROMPT = "You work on one part of this task: a task\nwith many parts\n\nYour part: s"


class Agent:
    def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        return "done"


class AsyncAgent:
    async def send_prompt(self, prompt: str, context: dict[str, Any]) -> str:
        return "done"


def by_hand(ctx: TaskContext) -> str:
    return Agent().send_prompt(PROMPT, {})


async def by_hand_async(ctx: TaskContext) -> str:
    return await AsyncAgent().send_prompt(PROMPT, {})


def measure() -> Iterator[Figure]:
    yield from _against("execute_parallel(), in threads", _in_threads, _bare_threads)
    yield from _against("execute(), on the loop", _on_the_loop, _bare_loop)


def _against(what: str, ours: Callable[[], float], bare: Callable[[], float]) -> Iterator[Figure]:
    spent: list[float] = []
    plain: list[float] = []
    for _ in range(ROUNDS):
        for measured, times in ((bare, plain), (ours, spent)):
            gc.collect()
            times.append(measured())
    yield Figure(f"coordinator {what}", median(spent) / SIZE * 1e6, unit="µs per task")
    ratio = median(a / b for a, b in zip(spent, plain, strict=True))
    yield Figure(f"coordinator {what}: against the bare runtime", ratio, 1.3, "×")


def _parts() -> list[SubTask]:
    return [SubTask(n, "T", f"s{n}", "", 10, 1, parallel_group=1) for n in range(SIZE)]


def _tasks(agent: Any) -> list[Task]:
    """What the coordinator would submit."""
    return [
        Task(
            f"T/{n}",
            agent,
            prompt=f"{PROMPT}{n}",
            claims=(uses("tests run alone"),),
            timeout=600.0,
            retry=Retry(3),
            estimate=60.0,
            labels={"title": f"s{n}", "complexity": "10"},
        )
        for n in range(SIZE)
    ]


def _in_threads() -> float:
    with ParallelAgentCoordinator(None, Agent, CONFIG) as coordinator:
        parts = _parts()
        began = perf_counter()
        results = coordinator.execute_parallel(parts, PARENT)
        spent = perf_counter() - began
    assert all(each["status"] == "completed" for each in results)
    return spent


def _bare_threads() -> float:
    with RuntimeHost(lambda: Runtime(SLOTS)) as runtime:
        began = perf_counter()
        result = runtime.run(_tasks(by_hand)).wait()
        spent = perf_counter() - began
    assert result.all_succeeded
    return spent


def _on_the_loop() -> float:
    async def main() -> float:
        async with ParallelAgentCoordinator(None, AsyncAgent, CONFIG) as coordinator:
            parts = _parts()
            began = perf_counter()
            results = await coordinator.execute(parts, PARENT)
            spent = perf_counter() - began
        assert all(each["status"] == "completed" for each in results)
        return spent

    return asyncio.run(main())


def _bare_loop() -> float:
    async def main() -> float:
        async with Runtime(SLOTS) as runtime:
            began = perf_counter()
            result = await runtime.run(_tasks(by_hand_async))
            spent = perf_counter() - began
        assert result.all_succeeded
        return spent

    return asyncio.run(main())

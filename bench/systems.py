"""What a system costs over the bare runtime: the same tasks and claims, submitted by hand."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from bench.figure import Figure
from interlock import (
    AgentAssignment,
    AgentPool,
    ParallelExecutionGroup,
    ParallelExecutor,
    Roundtable,
    Runtime,
    Task,
    TaskContext,
    uses,
)

ROUNDS = 7
SIZE = 2_000
SLOTS = 5
IDS = [f"a{number}" for number in range(50)]

Measured = Callable[[], Coroutine[Any, Any, float]]


async def answer(ctx: TaskContext) -> str:
    return "yes"


def measure() -> Iterator[Figure]:
    yield from _against("pool", "run_parallel_tasks()", _pool, _bare)
    yield from _against("executor", "execute_group()", _executor, _bare_group)
    yield from _against(
        "executor with claims",
        "execute_group()",
        partial(_executor, True),
        partial(_bare_group, True),
    )
    yield from _against("roundtable", "discuss()", _roundtable, _bare_rounds)


def _against(system: str, what: str, ours: Measured, by_hand: Measured) -> Iterator[Figure]:
    spent: list[float] = []
    bare: list[float] = []
    for _ in range(ROUNDS):
        for measured, times in ((by_hand, bare), (ours, spent)):
            gc.collect()
            times.append(asyncio.run(measured()))
    yield Figure(f"{system} {what}", median(spent) / SIZE * 1e6, unit="µs per task")
    ratio = median(a / b for a, b in zip(spent, bare, strict=True))
    yield Figure(f"{system} {what}: against the bare runtime", ratio, 1.3, "×")


async def _pool() -> float:
    async with AgentPool(agent_factory=lambda entry: answer, max_concurrent=SLOTS) as pool:
        await pool.spawn_agents([{"agent_id": each} for each in IDS])
        tasks = [{"agent_id": IDS[n % len(IDS)], "prompt": "work"} for n in range(SIZE)]
        began = perf_counter()
        found = await pool.run_parallel_tasks(tasks)
        spent = perf_counter() - began
    assert all(each["status"] == "success" for each in found)
    return spent


async def _bare() -> float:
    """With the making of the tasks, since a pool makes them too."""
    async with Runtime(SLOTS, order="first_come") as runtime:
        began = perf_counter()
        tasks = [_task(f"{n}", IDS[n % len(IDS)], timeout=300.0) for n in range(SIZE)]
        result = await runtime.run(tasks)
        spent = perf_counter() - began
    assert result.all_succeeded
    return spent


def _task(name: str, agent_id: str, **options: Any) -> Task:
    return Task(
        f"{agent_id}#{name}",
        answer,
        prompt="work",
        claims=[uses(f"session {agent_id}", exclusive=True)],
        labels={"agent": agent_id},
        **options,
    )


@dataclass
class Named:
    """Anything with an id."""

    id: str


@dataclass
class Result:
    agent_id: str
    task_id: str
    is_success: bool = True
    total_cost_usd: float = 0.0


class Engine:
    async def run(self, *, identity: Named, task: Named, **_: Any) -> Result:
        return Result(identity.id, task.id)


async def _executor(claims: bool = False) -> float:
    assignments = [
        AgentAssignment(
            identity=Named(f"agent-{n}"),
            task=Named(f"task-{n}"),
            resource_claims=(f"src/{n}.py",) if claims else (),
        )
        for n in range(SIZE)
    ]
    group = ParallelExecutionGroup(
        group_id="group", assignments=tuple(assignments), max_concurrency=SLOTS
    )
    executor = ParallelExecutor(engine=Engine())
    began = perf_counter()
    result = await executor.execute_group(group)
    spent = perf_counter() - began
    assert result.all_succeeded
    return spent


async def _bare_group(claims: bool = False) -> float:
    async def agent(n: int) -> Result:
        return Result(f"agent-{n}", f"task-{n}")

    async with Runtime(SLOTS, order="first_come") as runtime:
        began = perf_counter()
        tasks = [
            Task(f"task-{n}", agent, args=(n,), writes=[f"src/{n}.py"] if claims else ())
            for n in range(SIZE)
        ]
        result = await runtime.run(tasks)
        spent = perf_counter() - began
    assert result.all_succeeded
    return spent


async def _roundtable() -> float:
    async with AgentPool(agent_factory=lambda entry: answer, max_concurrent=SLOTS) as pool:
        await pool.spawn_agents([{"agent_id": each} for each in IDS])
        table = Roundtable(None, pool, max_history=0)
        began = perf_counter()
        found = await table.discuss("work", IDS, rounds=SIZE // len(IDS))
        spent = perf_counter() - began
    assert all(set(each["responses"].values()) == {"yes"} for each in found)
    return spent


async def _bare_rounds() -> float:
    async with Runtime(SLOTS, order="first_come") as runtime:
        began = perf_counter()
        for number in range(SIZE // len(IDS)):
            tasks = [_task(f"{number}", each, deadline=120.0) for each in IDS]
            assert (await runtime.run(tasks)).all_succeeded
        return perf_counter() - began

"""Agents, tasks and an engine for the tests of the executor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from interlock import AgentAssignment, ParallelExecutionGroup, ParallelExecutor, ParallelProgress
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

T = TypeVar("T")
Does = Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Agent:
    id: str


@dataclass(frozen=True)
class Job:
    """A task; `does` is what its agent does, and False from it means no success."""

    id: str
    does: Does | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Report:
    task_id: str
    agent_id: str
    is_success: bool = True
    total_cost_usd: float = 0.0


class Engine:
    """Does what the jobs say, and notes who began, who ended, and how many there were at most."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.inside: set[str] = set()
        self.most = 0

    async def run(self, identity: Agent, task: Job) -> Any:
        self.began.append(task.id)
        self.inside.add(identity.id)
        self.most = max(self.most, len(self.inside))
        try:
            value = await task.does() if task.does else None
        finally:
            self.inside.discard(identity.id)
            self.ended.append(task.id)
        if value is None or isinstance(value, bool):
            return Report(task.id, identity.id, value is not False, total_cost_usd=0.25)
        return value


def assign(task_id: str, does: Does | None = None, *claims: str, **options: Any) -> AgentAssignment:
    """Task `x` for the agent `agent-x`."""
    return AgentAssignment(
        identity=Agent(f"agent-{task_id}"),
        task=Job(task_id, does),
        resource_claims=claims,
        **options,
    )


def group(*assignments: AgentAssignment, id: str = "g", **options: Any) -> ParallelExecutionGroup:
    return ParallelExecutionGroup(group_id=id, assignments=assignments, **options)


def executor(engine: Any = None, **options: Any) -> ParallelExecutor:
    """An executor for the virtual loop."""
    return ParallelExecutor(engine=engine or Engine(), ports=simulated_ports(), **options)


def played(main: Callable[[], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """What a simulated program returns; it must leave nothing running."""
    run = simulate(main, seed=seed, deadline=1e6)
    value = run.value()
    assert not run.leaked, run.leaked
    assert not run.complaints, run.complaints
    return value


def raises(error: BaseException) -> Does:
    async def does() -> None:
        await asyncio.sleep(0)
        raise error

    return does


def sleeps(seconds: float, value: Any = None) -> Does:
    async def does() -> Any:
        await asyncio.sleep(seconds)
        return value

    return does


def resists(seconds: float) -> Does:
    """Goes on for that long, whoever cancels it."""

    async def does() -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            try:
                await asyncio.sleep(until - loop.time())
            except asyncio.CancelledError:
                continue

    return does


class Watcher:
    """A progress callback that remembers what it was told."""

    def __init__(self) -> None:
        self.seen: list[ParallelProgress] = []

    def __call__(self, progress: ParallelProgress) -> None:
        self.seen.append(progress)

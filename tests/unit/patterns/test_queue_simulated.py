"""The queue on the deterministic loop: thousands of interleavings, one per seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any, cast

import pytest

from interlock import AgentTask, Runtime, TaskQueue, conflicts, write
from interlock.patterns.queue.task_future import TaskFuture
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

TYPES = ("architect", "developer", "tester", "writer")
FILES = ("src/", "src/a.py", "./src/b.py", "docs/**", "docs/x.md", "*.toml", "setup.toml")
SLOTS = 3


def files(task: AgentTask) -> tuple[str, ...]:
    return cast("tuple[str, ...]", task.files_to_modify)


class World:
    """What agents see of each other."""

    def __init__(self) -> None:
        self.alive: list[AgentTask] = []
        self.most = 0
        self.ran: Counter[str] = Counter()

    def enter(self, task: AgentTask) -> None:
        for other in self.alive:
            assert other.agent_type != task.agent_type
            for mine in files(task):
                for theirs in files(other):
                    assert not conflicts(write(mine), write(theirs)), (mine, theirs)
        self.alive.append(task)
        self.most = max(self.most, len(self.alive))
        self.ran[str(task.id)] += 1
        assert len(self.alive) <= SLOTS

    def leave(self, task: AgentTask) -> None:
        self.alive.remove(task)


def made(number: int, chance: Random, world: World) -> AgentTask:
    task: AgentTask

    async def work() -> str:
        world.enter(task)
        try:
            await asyncio.sleep(chance.choice((0, 0.1, 1, 5)))
            if chance.random() < 0.2:
                raise LookupError(str(task.id))
        finally:
            world.leave(task)
        return str(task.id)

    task = AgentTask(
        chance.choice(TYPES),
        f"work {number}",
        chance.sample(FILES, chance.randrange(3)),
        # A thread cannot be stopped: it holds what it has until it ends, whoever has given up.
        (lambda: Blocking(work())) if chance.random() < 0.5 else work,
        chance.choice((0, 0, 5)),
        id=f"t{number}",
        attempts=chance.choice((1, 1, 3)),
        timeout=chance.choice((None, None, 2)),
        after=[f"t{number - 1}"] if number and chance.random() < 0.2 else [],
    )
    return task


async def story(seed: int) -> tuple[World, list[TaskFuture]]:
    chance, world = Random(seed), World()
    async with Runtime(SLOTS, order="first_come", ports=simulated_ports(seed)) as rt:
        queue = TaskQueue(runtime=rt)
        futures = []
        for number in range(20):
            futures.append(queue.submit_task(made(number, chance, world)))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random())
            if chance.random() < 0.15:
                chance.choice(futures).cancel()
            counts = queue.get_status()
            unfinished = sum(not each.done() for each in futures)
            waiting = [each for each in counts["tasks"] if each["state"] not in RUNNING]
            assert len(counts["running_agents"]) <= SLOTS
            assert counts["queued_tasks"] == len(waiting) <= unfinished
            assert all(each["waits_for"] for each in waiting)
        waiting_for = [asyncio.wrap_future(each) for each in futures]
        await asyncio.wait(waiting_for)
        for each in waiting_for:
            assert each.cancelled() or each.exception() or each.result()
        # Threads whose time was up may still run; everything else is over.
        status = queue.get_status()
        assert status["queued_tasks"] == 0
        assert len(status["running_agents"]) == len(world.alive)
    return world, futures


RUNNING = ("running", "needs_you", "stopping")


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_tasks_exclude_each_other_and_every_future_has_one_end(start: int) -> None:
    ends: Counter[str] = Counter()
    most = 0
    for seed in range(start, start + 50):
        run = simulate(lambda seed=seed: story(seed), seed=seed)  # type: ignore[misc]
        world, futures = run.value()
        assert not run.leaked
        assert not run.complaints
        assert not world.alive
        most = max(most, world.most)
        for future in futures:
            ends[_end(future)] += 1
    assert most == SLOTS
    assert set(ends) == {"result", "cancelled", "LookupError", "TimeoutError", "TaskFailed"}


def _end(future: TaskFuture) -> str:
    if future.cancelled():
        return "cancelled"
    error: Any = future.exception(timeout=0)
    if error is None:
        assert future.result(timeout=0) == future.name
        return "result"
    return type(error).__name__

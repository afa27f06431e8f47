"""The scheduler on the deterministic loop: many interleavings, one per seed.

The agents themselves are the judge: each looks at who else is alive when it begins.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from interlock import Claim, Kind, State, TaskContext, TaskScheduler, current, write
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

FILES = ("a.txt", "b.txt", "c.txt")


class World:
    """What agents see of each other."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.alive: dict[Agent, TaskContext] = {}
        self.seen: Counter[str] = Counter()

    def enter(self, agent: Agent) -> None:
        self.seen["zombies"] += any(each.cancelled() for each in self.alive.values())
        for other in self.alive:
            assert not set(agent.files) & set(other.files), "two have the same file"
        self.alive[agent] = current()
        working = [each for each in self.alive.values() if not each.cancelled()]
        assert len(working) <= self.most, "more than may run at once"
        self.seen["full"] += len(working) == self.most


class Agent:
    """Blocks, and fails now and then; nothing can stop it."""

    def __init__(self, role: str, chance: Random, world: World) -> None:
        self.role = role
        self.files = chance.sample(FILES, chance.choice((0, 0, 1, 2)))
        self._lasts = chance.choice((0, 0.1, 1, 3, 20))
        self._fails = chance.random() < 0.15
        self._world = world

    def run_step(self) -> Any:
        return Blocking(self._work())

    async def _work(self) -> str:
        self._world.enter(self)
        try:
            await asyncio.sleep(self._lasts)
            if self._fails:
                raise LookupError(self.role)
        finally:
            del self._world.alive[self]
        return self.role


def claims(agent: Agent) -> list[Claim]:
    return [write(each) for each in agent.files]


async def story(seed: int) -> Counter[str]:
    chance = Random(seed)
    world = World(chance.randint(1, 3))
    isolates = chance.random() < 0.6
    scheduler = TaskScheduler(
        world.most,
        5.0,
        on_error="isolate" if isolates else "fail_fast",
        claims=claims,
        ports=simulated_ports(seed),
    )
    async with scheduler:
        for number in range(3):
            agents = [Agent(f"{number}.{each}", chance, world) for each in range(6)]
            running = asyncio.create_task(scheduler.run(agents))
            if chance.random() < 0.25:
                await asyncio.sleep(chance.random() * 4)
                running.cancel()
            elif chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 2)
                look(scheduler, world)
            await asyncio.wait([running])
            judge(running, agents, isolates, world)
        await judge_record(scheduler)
    return world.seen


def look(scheduler: TaskScheduler, world: World) -> None:
    """Whoever waits can say what for."""
    progress = scheduler.runtime.progress()
    assert progress.running <= world.most
    for number in range(3):
        for each in range(6):
            try:
                handle = scheduler.runtime.handle(f"{number}.{each}")
            except ValueError:
                continue  # not there yet
            if handle.state is State.WAITING:
                assert handle.why().reasons
                world.seen["why"] += 1


def judge(
    running: asyncio.Task[list[Any]], agents: list[Agent], isolates: bool, world: World
) -> None:
    """One entry for each agent, in order; or the first failure; or nothing, if cancelled."""
    if running.cancelled():
        world.seen["cancelled"] += 1
        return
    error = running.exception()
    if error is not None:
        assert not isolates
        assert isinstance(error, (LookupError, TimeoutError))
        world.seen[f"raised {type(error).__name__}"] += 1
        return
    for agent, result in zip(agents, running.result(), strict=True):
        if isinstance(result, LookupError):
            assert result.args == (agent.role,)
        else:
            assert result == agent.role or isinstance(result, TimeoutError)
        world.seen[type(result).__name__] += 1


async def judge_record(scheduler: TaskScheduler) -> None:
    """Exactly one end for each task, and all of them in the record of the run."""
    runtime = scheduler.runtime
    submitted, settled = Counter[str](), Counter[str]()
    last = runtime.progress().total
    async for event in runtime.events():
        if event.kind is Kind.SUBMITTED:
            submitted[event.task_id] += 1
        elif event.kind is Kind.SETTLED:
            settled[event.task_id] += 1
            if sum(settled.values()) == last:
                break
    assert submitted == settled
    assert set(settled.values()) <= {1}


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_agents_exclude_each_other_and_every_call_has_one_end(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + 50):
        run = simulate(lambda seed=seed: story(seed), seed=seed)  # type: ignore[misc]
        seen += run.value()
        assert all(each.name.startswith("thread ") for each in run.leaked)
        assert not run.complaints
    assert set(seen) >= {
        *("str", "LookupError", "TimeoutError", "cancelled", "why", "full", "zombies"),
        *("raised LookupError", "raised TimeoutError"),
    }


def test_the_same_seed_gives_the_same_story() -> None:
    traces = {simulate(lambda: story(7), seed=7).fingerprint for _ in range(3)}
    assert len(traces) == 1

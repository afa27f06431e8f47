"""Breakers, gates, bounds and rates together under seeded schedules."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from interlock import (
    AgentFailed,
    Auto,
    Breaker,
    Gate,
    Load,
    Rate,
    Retry,
    Runtime,
    Task,
    TaskContext,
)
from interlock.kernel import stimuli as s
from interlock.model.event import Event, Kind
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import VirtualRun, simulate

NAME = "breaker:gpt"
COOL_DOWN = 10.0
AUTO, GATE = Auto(1, 5), Gate(cpu=90)


class World:
    """Agents that fail in seeded outages, on a machine whose load changes by itself."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.seed = seed
        self.outages = [(at, at + self.dice.choice((5, 30))) for at in (3, 60, 120)]
        self.events: list[Event] = []
        self.inside: dict[str, float] = {}
        self.states: list[str] = ["closed"]
        self.broken: list[str] = []
        self.probes = 0
        self.looks: list[float] = []

    def read(self) -> Load:
        self.looks.append(self.now())
        return Load(float(self.dice.choice((10, 50, 85, 95))), 20.0)

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    async def agent(self, ctx: TaskContext) -> None:
        uses_it = any(claim.resource == NAME for claim in ctx.task.claims)
        await ctx.acquire("model")
        await ctx.sleep(self.dice.choice((0.0, 0.3, 1.0, 2.5)))
        if uses_it and any(begin <= self.now() < end for begin, end in self.outages):
            if self.dice.random() < 0.2:
                raise AgentFailed("429", retry_after=2.0, rate="model")
            if self.dice.random() < 0.2:
                await ctx.sleep(50)  # until its timeout
            raise OSError("503")

    def heard(self, event: Event) -> None:
        """Follow the breaker by the record alone; whoever starts must be allowed to."""
        self.events.append(event)
        data = event.data
        if isinstance(data, s.Throttle) and data.resource == NAME:
            self.states.append("closed" if data.more is None else f"may start: {data.more}")
        elif event.kind is Kind.STARTED and event.task_id.startswith("call"):
            if self.states[-1] == "may start: 0":
                self.broken.append(f"{event.task_id} starts through an open breaker")
            elif self.states[-1] == "may start: 1":
                self.states.append("may start: 0")
                self.probes += 1

    async def main(self) -> None:
        limits: dict[str, Rate | Breaker] = {"model": Rate("20/s"), NAME: Breaker(3, COOL_DOWN)}
        ports = simulated_ports(self.seed, load=lambda: self)
        options = Retry(3, backoff=0.5)
        async with Runtime(AUTO, ports=ports, limits=limits, gate=GATE) as rt:
            rt.listen(self.heard)
            for number in range(60):
                calls = self.dice.random() < 0.7
                task = Task(
                    f"{'call' if calls else 'other'}{number}",
                    self.agent,
                    uses=[NAME] if calls else [],
                    writes=self.dice.choice(("src/a", "src/b", "src/**", ())),
                    timeout=10,
                    retry=options,
                )
                handle = rt.submit(task)
                if self.dice.random() < 0.1:
                    asyncio.get_running_loop().call_later(5.0, handle.cancel)
                await asyncio.sleep(self.dice.choice((0.0, 0.1, 1.0, 5.0)))
                assert rt.progress().running <= AUTO.most

    def run(self) -> VirtualRun[None]:
        return simulate(self.main, seed=self.seed, deadline=20_000)


@pytest.mark.parametrize("seed", range(25))
def test_no_schedule_breaks_a_limit(seed: int) -> None:
    world = World(seed)
    run = world.run()
    run.value()
    assert not run.leaked
    assert world.broken == []
    settled = [each.task_id for each in world.events if each.kind is Kind.SETTLED]
    assert len(settled) == len(set(settled)) == 60
    waits = [b - a for a, b in zip(world.looks, world.looks[1:], strict=False)]
    assert min(waits) >= 0.25 - 1e-9


def test_the_seeds_see_probes_that_fail_and_probes_that_succeed() -> None:
    changes: set[tuple[str, str]] = set()
    probes = 0
    for seed in range(10):
        world = World(seed)
        world.run()
        probes += world.probes
        changes |= set(zip(world.states, world.states[1:], strict=False))
    assert probes > 20
    assert ("may start: 0", "closed") in changes
    assert ("may start: 0", "may start: 0") in changes  # a probe failed
    assert ("closed", "may start: 0") in changes


def test_the_same_seed_makes_the_same_record() -> None:
    first, second = World(7), World(7)
    assert first.run().fingerprint == second.run().fingerprint
    assert [each[:4] for each in first.events] == [each[:4] for each in second.events]

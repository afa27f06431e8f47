"""Blocking agents for the tests of the scheduler: in a simulation, awaiting stands for blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from interlock import TaskScheduler
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import VirtualRun, simulate


class World:
    """What agents have done."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.alive: list[str] = []
        self.most = 0

    def agent(self, role: str, seconds: float = 0.0, value: Any = None) -> Agent:
        return Agent(self, role, seconds, role if value is None else value)


class Agent:
    """Blocks for some time, then returns a value or raises it."""

    def __init__(self, world: World, role: str, seconds: float, value: Any) -> None:
        self.role = role
        self._world = world
        self._seconds = seconds
        self._value = value

    def run_step(self) -> Any:
        return Blocking(self._work())

    async def _work(self) -> Any:
        world = self._world
        world.begun.append(self.role)
        world.alive.append(self.role)
        world.most = max(world.most, len(world.alive))
        try:
            await asyncio.sleep(self._seconds)
            if isinstance(self._value, BaseException):
                raise self._value
            return self._value
        finally:
            world.alive.remove(self.role)
            world.ended.append(self.role)


def scheduler(
    max_concurrent: int = 3, timeout_s: float | None = 120.0, seed: int = 0, **options: Any
) -> TaskScheduler:
    return TaskScheduler(max_concurrent, timeout_s, ports=simulated_ports(seed), **options)


def played(
    main: Callable[[], Coroutine[Any, Any, Any]], seed: int = 0, stuck: int = 0
) -> VirtualRun[Any]:
    """Run it. Nothing may be left of it but so many threads that cannot be stopped."""
    run = simulate(main, seed=seed)
    run.value()
    assert [each.name.partition(" ")[0] for each in run.leaked] == ["thread"] * stuck
    assert not run.complaints
    return run

"""Pools and agents for the tests of the pool and the roundtable, on the virtual loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from interlock import AgentPool, TaskContext
from interlock.testing.simulated_ports import simulated_ports

Does = Callable[[TaskContext], Awaitable[Any]]


class Cast:
    """A factory: an agent does what it is told here under its id, or repeats its prompt.

    Notes who was made, who is at work, what each was asked, and how many there were at most.
    """

    def __init__(self, **does: Does) -> None:
        self.does = does
        self.made: list[dict[str, Any]] = []
        self.prompts: dict[str, list[str]] = {}
        self.inside: Counter[str] = Counter()
        self.most = 0
        self.most_of: Counter[str] = Counter()

    async def __call__(self, entry: dict[str, Any]) -> Any:
        self.made.append(entry)
        agent_id = entry["agent_id"]

        async def agent(ctx: TaskContext) -> Any:
            self.prompts.setdefault(agent_id, []).append(ctx.prompt or "")
            self.inside[agent_id] += 1
            self.most = max(self.most, self.inside.total())
            self.most_of[agent_id] = max(self.most_of[agent_id], self.inside[agent_id])
            try:
                does = self.does.get(agent_id)
                return f"{agent_id}: {ctx.prompt}" if does is None else await does(ctx)
            finally:
                self.inside[agent_id] -= 1

        return agent


def pool_of(cast: Any = None, **options: Any) -> AgentPool:
    """A pool for the virtual loop."""
    return AgentPool(agent_factory=cast or Cast(), ports=simulated_ports(), **options)


def agents(*ids: str, **more: Any) -> list[dict[str, Any]]:
    return [{"agent_id": each, **more} for each in ids]


def tasks(*ids: str, prompt: str = "go", **more: Any) -> list[dict[str, Any]]:
    return [{"agent_id": each, "prompt": prompt, **more} for each in ids]


def raising(error: BaseException) -> Does:
    async def does(ctx: TaskContext) -> None:
        await asyncio.sleep(1)
        raise error

    return does


def resting(duration: float, value: Any = "done") -> Does:
    async def does(ctx: TaskContext) -> Any:
        await asyncio.sleep(duration)
        return value

    return does


async def stuck(ctx: TaskContext) -> None:
    """Whatever anybody says, it goes on for an hour."""
    loop = asyncio.get_running_loop()
    until = loop.time() + 3600
    while loop.time() < until:
        try:
            await asyncio.sleep(until - loop.time())
        except asyncio.CancelledError:
            continue


def of(entries: list[dict[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in entries]

"""Small durable programs, each about a few things that must survive a crash.

In every life a program submits the same tasks. What its agents return depends on their task alone.
"""

from __future__ import annotations

import asyncio

from interlock import Handle, Kind, Retry, Runtime, Task, TaskContext
from interlock.testing.virtual_loop import VirtualLoop
from tests.faults.durable_world import DurableWorld, Scenario

TRIES = Retry(3, backoff=2.0, jitter=0.25)
DEADLINE = 4.0


class ScenarioAgents:
    """What the tasks of a world do."""

    def __init__(self, world: DurableWorld) -> None:
        self._world = world

    async def step(self, ctx: TaskContext, *_: object) -> str:
        self._world.ran(ctx)
        await self._world.work(ctx)
        return f"{ctx.task.key or ctx.plain_id}!"

    async def flaky(self, ctx: TaskContext) -> str:
        self._world.ran(ctx)
        await self._world.work(ctx, 0.5)
        if ctx.attempt < TRIES.attempts:
            self._world.note("failed", ctx.task.id, ctx.attempt)
            raise OSError("not yet")
        return f"{ctx.task.id}!"

    async def breaks(self, ctx: TaskContext) -> str:
        self._world.ran(ctx)
        await self._world.work(ctx)
        raise ValueError("it cannot be done")

    async def hangs(self, ctx: TaskContext) -> str:
        self._world.ran(ctx)
        await self._world.work(ctx, 1000.0)
        return "never"

    async def calls(self, ctx: TaskContext) -> str:
        self._world.ran(ctx)
        await ctx.acquire("api")
        self._world.note("took", ctx.task.id)
        await self._world.work(ctx, 0.25)
        return f"{ctx.task.id}!"

    async def asks(self, ctx: TaskContext) -> str:
        self._world.ran(ctx)
        answer = await ctx.ask("Which colour?")
        await self._world.work(ctx)
        return answer

    async def kills(self, ctx: TaskContext) -> str:
        """Crash the coordinator."""
        self._world.ran(ctx)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.crash()
        return "never"

    async def parent(self, ctx: TaskContext) -> str:
        self._world.ran(ctx)
        own = [Task(f"{ctx.task.id}/{name}", self.step) for name in "xy"]
        (await ctx.run(own)).raise_for_failures()
        return f"{ctx.task.id}!"


async def a_chain_with_a_retry(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    first = rt.submit(agents.step, id="first")
    second = rt.submit(agents.flaky, id="second", after=first, retry=TRIES)
    third = rt.submit(agents.step, second, id="third")
    await world.acknowledged(rt, "submitted", "first", "second", "third")
    await world.told(first, second, third)


async def a_fan_out_on_two_files(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    handles = [rt.submit(agents.step, id=f"a{n}", writes="a.py") for n in range(2)]
    handles += [rt.submit(agents.step, id=f"b{n}", writes=["b.py", "c.py"]) for n in range(2)]
    handles.append(rt.submit(agents.step, id="both", writes=["a.py", "c.py"]))
    await world.acknowledged(rt, "submitted", *(each.task_id for each in handles))
    await world.told(*handles)


async def children_and_a_deadline(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    late = rt.submit(agents.hangs, id="late", deadline=DEADLINE)
    parent = rt.submit(agents.parent, id="parent")
    await world.acknowledged(rt, "submitted", "late", "parent")
    await world.told(late, parent)


async def keys_and_a_cancel(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    # The names differ in each life: only the key says that it is the same task.
    paid = [rt.submit(agents.step, id=f"pay-{key}-{world.life}", key=key) for key in "kl"]
    unwanted = rt.submit(agents.step, id="unwanted", after=paid)
    await world.acknowledged(rt, "submitted", "unwanted")
    if rt.cancel(unwanted):
        await world.acknowledged(rt, "cancelled", "unwanted")
    await world.told(unwanted, *paid)


async def a_rate_and_a_question(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    asks = rt.submit(agents.asks, id="asks")
    handles: list[Handle[str]] = [rt.submit(agents.calls, id=f"call-{n}") for n in range(3)]
    await world.acknowledged(rt, "submitted", "asks", *(each.task_id for each in handles))
    answering = asyncio.create_task(_answer(rt, world))
    await world.told(asks, *handles)
    await answering


async def _answer(rt: Runtime, world: DurableWorld) -> None:
    async for event in rt.events():
        if event.kind is Kind.NEEDS_YOU and rt.questions():
            rt.answer("asks", "blue")
            await world.acknowledged(rt, "answered", "asks")
        if event.kind in (Kind.SETTLED, Kind.REUSED) and event.task_id == "asks":
            return


async def a_group_that_fails_fast(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    tasks = [
        Task("breaks", agents.breaks),
        Task("hangs", agents.hangs),
        Task("never", agents.step, after="breaks"),
    ]
    for outcome in (await rt.run(tasks, fail_fast=True)).outcomes:
        world.hears(outcome)


async def a_task_that_kills(rt: Runtime, world: DurableWorld) -> None:
    agents = ScenarioAgents(world)
    killer = rt.submit(agents.kills, id="killer")
    await world.told(killer, rt.submit(agents.step, id="next", after=killer))


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__.replace("_", " "): scenario
    for scenario in (
        a_chain_with_a_retry,
        a_fan_out_on_two_files,
        children_and_a_deadline,
        keys_and_a_cancel,
        a_rate_and_a_question,
        a_group_that_fails_fast,
    )
}

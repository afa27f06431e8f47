"""The session of an attempt, and agents that are called inside one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    Message,
    NotAnAgent,
    Runtime,
    Session,
    State,
    TaskContext,
    Usage,
    process,
    uses,
)
from interlock.runtime.within import within
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate

TALK = Session("talk", [Message("user", "hi")], agent_id="a", model="m")


async def test_where_nobody_keeps_sessions_it_has_a_name_and_has_been_silent() -> None:
    seen: list[Session] = []

    async def looks(ctx: TaskContext) -> None:
        seen.append(ctx.session)

    async with Runtime() as rt:
        await rt.submit(looks, id="me")
        assert str(seen[0]) == seen[0].session_id == f"{rt.run_id}/me"
        assert seen[0].messages == ()


async def test_children_are_a_part_of_the_session_that_their_parent_has_joined() -> None:
    async def child(ctx: TaskContext) -> tuple[Message, ...]:
        return ctx.session.messages

    async def parent(ctx: TaskContext) -> Any:
        alone = await ctx.submit(child).result()
        ctx.join(TALK)
        assert ctx.session is TALK
        return alone, await ctx.submit(child).result()

    async with Runtime() as rt:
        assert await rt.submit(parent).result() == ((), (Message("user", "hi"),))


async def blocking(ctx: TaskContext, word: str) -> str:
    return f"{ctx.prompt} {ctx.session} {word}"


class Step:
    def run_step(self) -> str:
        return "step"


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize(
    ("agent", "kwargs", "result"),
    [
        (blocking, {"word": "x"}, "do talk x"),
        (lambda ctx, word: f"{ctx.prompt} {ctx.session} {word}", {"word": "x"}, "do talk x"),
        (Step(), {}, "step"),
        (process(double), {"number": 4}, 8),
    ],
)
async def test_any_agent_can_be_called_inside_an_attempt(
    agent: Any, kwargs: dict[str, Any], result: Any
) -> None:
    call = within(agent)

    async def around(ctx: TaskContext) -> Any:
        ctx.join(TALK)
        return await call(ctx, **kwargs)

    async with Runtime(max_parallel=1) as rt:
        assert await rt.submit(around, prompt="do").result() == result


async def test_what_an_agent_inside_uses_and_raises_is_what_the_attempt_does() -> None:
    def spends(ctx: TaskContext) -> None:
        ctx.usage(tokens_in=3, cost=0.5)
        raise LookupError("gone")

    call = within(spends)

    async def around(ctx: TaskContext) -> None:
        await call(ctx)

    async with Runtime() as rt:
        outcome = await rt.submit(around)
    assert isinstance(outcome.exception, LookupError)
    assert outcome.usage == Usage(3, 0, 0.5)


async def test_an_agent_inside_that_somebody_cancels_is_a_failure_of_the_attempt() -> None:
    def stays(ctx: TaskContext) -> None:
        while not ctx.cancelled():
            rt.cancel("me/agent", "enough")

    call = within(stays)

    async def around(ctx: TaskContext) -> None:
        await call(ctx)

    async with Runtime() as rt:
        assert (await rt.submit(around, id="me")).reason == "AgentFailed: enough"


def test_a_thread_inside_an_attempt_keeps_what_the_attempt_held_alone_until_it_ends() -> None:
    alive: list[int] = []

    async def slow() -> None:
        assert not alive
        alive.append(1)
        await asyncio.sleep(60)
        alive.pop()

    call = within(lambda: Blocking(slow()))

    async def around(ctx: TaskContext) -> None:
        await call(ctx)

    async def main() -> list[State]:
        async with Runtime(ports=simulated_ports(), grace=100) as rt:
            claim = [uses("talk", exclusive=True)]
            handles = [rt.submit(around, claims=claim, timeout=5) for _ in range(2)]
            return [(await each).status for each in handles]

    assert simulate(main).value() == [State.TIMED_OUT, State.TIMED_OUT]


def test_what_is_no_agent_cannot_be_called_inside_one_either() -> None:
    with pytest.raises(NotAnAgent):
        within(3)

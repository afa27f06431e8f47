"""`ctx`, one by one, in async agents and in threads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock import InvalidOption, Kind, Runtime, State, Task, TaskContext, Usage

pytestmark = pytest.mark.usefixtures("workspace")


async def test_what_an_agent_sees_of_its_task(workspace: Path) -> None:
    async def looks(ctx: TaskContext) -> None:
        assert ctx.task.id == "me"
        assert ctx.task.claims == (interlock.write("src/"),)
        assert ctx.prompt == "Do it."
        assert ctx.attempt == 1
        assert ctx.workspace == workspace
        assert isinstance(ctx.workspace, Path)
        assert ctx.session.session_id == f"{rt.run_id}/me"
        assert ctx.results == {}
        assert not ctx.cancelled()
        assert not interlock.cancelled()

    async with Runtime() as rt:
        (await rt.run([Task("me", looks, prompt="Do it.", writes="src/")])).raise_for_failures()


async def test_the_results_of_dependencies_are_outcomes_by_id() -> None:
    async def looks(ctx: TaskContext) -> Any:
        with pytest.raises(TypeError):
            ctx.results["new"] = 1  # type: ignore[index]
        return {each: outcome.result for each, outcome in ctx.results.items()}

    async with Runtime() as rt:
        rt.submit(lambda: 1, id="one")
        two = rt.submit(lambda: [2], id="two")
        assert await rt.submit(looks, after=["one", two]).result() == {"one": 1, "two": [2]}


async def test_cancelled_tells_a_blocking_agent_to_stop() -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def polite(ctx: TaskContext) -> None:
        loop.call_soon_threadsafe(started.set)
        while not (ctx.cancelled() and interlock.cancelled()):
            ctx.task  # noqa: B018 - a moment of work

    async with Runtime(grace=30) as rt:
        handle = rt.submit(polite)
        await started.wait()
        handle.cancel("enough")
        outcome = await handle
    assert (outcome.status, outcome.reason) == (State.CANCELLED, "enough")


async def test_sleep_waits_and_is_cut_short_by_a_cancellation() -> None:
    asleep = asyncio.Event()

    async def sleeps(ctx: TaskContext) -> str:
        await ctx.sleep(0.001)
        asleep.set()
        await ctx.sleep("1h")
        return "never"

    async with Runtime() as rt:
        handle = rt.submit(sleeps)
        await asleep.wait()
        handle.cancel()
    assert handle.outcome is not None
    assert handle.outcome.status is State.CANCELLED


@pytest.mark.parametrize("blocking", [True, False])
async def test_report_log_and_usage_are_told(blocking: bool) -> None:
    def tells(ctx: TaskContext) -> None:
        ctx.report(0.5, "half way")
        ctx.log("a line")
        ctx.usage(tokens_in=10, tokens_out=20, cost=0.5)
        ctx.usage(tokens_in=1)
        if ctx.attempt == 1:
            raise OSError("once more")

    async def tells_later(ctx: TaskContext) -> None:
        tells(ctx)

    agent: Any = tells if blocking else tells_later
    async with Runtime() as rt:
        retry = interlock.Retry(attempts=2, backoff=0)
        outcome = await rt.submit(agent, id="me", retry=retry)
    events = [each async for each in rt.events()]
    reported = [each.fields for each in events if each.kind is Kind.REPORTED]
    logged = [each.fields for each in events if each.kind is Kind.LOGGED]
    assert reported == [{"fraction": 0.5, "message": "half way"}] * 2
    assert logged == [{"line": "a line"}] * 2
    assert outcome.usage == Usage(22, 40, 1.0)


async def test_senseless_reports_are_refused() -> None:
    async def agent(ctx: TaskContext) -> None:
        for fraction in (-0.1, 1.1, float("nan"), "half"):
            with pytest.raises(InvalidOption):
                ctx.report(fraction)  # type: ignore[arg-type]
        with pytest.raises(InvalidOption):
            ctx.usage(cost=-1.0)
        with pytest.raises(InvalidOption):
            ctx.ask("  ")
        with pytest.raises(InvalidOption):
            ctx.sleep(-1)

    async with Runtime() as rt:
        await rt.submit(agent).result()


@pytest.mark.parametrize("blocking", [True, False])
async def test_extend_claims_more_in_mid_flight(blocking: bool) -> None:
    order: list[str] = []
    holding, go_on = asyncio.Event(), asyncio.Event()

    async def holds() -> None:
        holding.set()
        await go_on.wait()
        order.append("first is done with b.txt")

    async def extends(ctx: TaskContext) -> None:
        await ctx.extend(writes="b.txt")
        order.append("second has b.txt")

    def extends_in_a_thread(ctx: TaskContext) -> None:
        ctx.extend(writes="b.txt").wait()
        order.append("second has b.txt")

    second: Any = extends_in_a_thread if blocking else extends
    # With two slots: the one that waits lends out its own.
    async with Runtime(max_parallel=2) as rt:
        rt.submit(holds, writes="b.txt")
        await holding.wait()
        rt.submit(second, id="second", writes="a.txt")
        assert (await rt.submit(lambda: "on the lent slot", after=[])).succeeded
        go_on.set()
    assert order == ["first is done with b.txt", "second has b.txt"]


@pytest.mark.parametrize("blocking", [True, False])
async def test_ask_needs_you_and_holds_no_slot(blocking: bool) -> None:
    async def asks(ctx: TaskContext) -> str:
        return await ctx.ask("Land it?")

    def asks_in_a_thread(ctx: TaskContext) -> str:
        return ctx.ask("Land it?").wait()

    agent: Any = asks_in_a_thread if blocking else asks
    async with Runtime(max_parallel=1) as rt:
        handle = rt.submit(agent, id="asks")
        async for event in rt.events():
            if event.kind is Kind.NEEDS_YOU:
                break
        assert handle.state is State.NEEDS_YOU
        assert rt.progress().needs_you == 1
        assert [(each.task_id, each.question) for each in rt.questions()] == [("asks", "Land it?")]
        assert "Land it?" in str(rt.why("asks"))
        assert (await rt.submit(lambda: "meanwhile")).result == "meanwhile"
        rt.answer("asks", "yes")
        assert (await handle).result == "yes"
        assert rt.questions() == ()
        with pytest.raises(interlock.UnknownTask):
            rt.answer("asks", "yes again")


async def test_children_by_submit_run_and_map() -> None:
    def double(number: int) -> int:
        return 2 * number

    async def parent(ctx: TaskContext) -> list[Any]:
        one = await ctx.submit(double, 1)
        two = await ctx.run([Task("child", double, args=(2,))])
        three = await ctx.map(double, [3])
        return [one.result, two["child"].result, three[0].result]

    def parent_in_a_thread(ctx: TaskContext) -> list[Any]:
        one = ctx.submit(double, 1).wait()
        two = ctx.run([Task("child of a thread", double, args=(2,))]).wait()
        three = ctx.map(double, [3]).wait()
        return [one.result, two.outcomes[0].result, three[0].result]

    async with Runtime(max_parallel=1) as rt:
        assert await rt.submit(parent).result() == [2, 4, 6]
        assert await rt.submit(parent_in_a_thread).result() == [2, 4, 6]
        assert rt.handle("child").parent is not None


async def test_acquire_knows_its_rates() -> None:
    async def agent(ctx: TaskContext) -> None:
        with pytest.raises(interlock.UnknownResource, match="there are: openai"):
            await ctx.acquire("opneai")
        with pytest.raises(interlock.UsageError):
            await ctx.acquire("openai", requests=1000)  # more than there ever will be

    async with Runtime(limits={"openai": interlock.Rate(requests="60/min")}) as rt:
        await rt.submit(agent).result()


async def test_an_answer_that_comes_as_the_agent_stops_waiting_is_not_lost() -> None:
    async with Runtime() as rt:

        async def agent(ctx: TaskContext) -> list[str]:
            async def asked() -> str:
                return await ctx.ask("Land it?")

            waiting = asyncio.create_task(asked())
            while not rt.questions():
                await asyncio.sleep(0)
            rt.answer("a", "yes")
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return [await ctx.ask("Land it?")]

        assert (await rt.submit(agent, id="a")).result == ["yes"]
        assert rt.questions() == ()

"""Leaving a Runtime: everything is waited for or stopped, and whoever will not stop is named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interlock import (
    AttemptsStillAlive,
    Handle,
    Kind,
    NotRunning,
    Outcome,
    Runtime,
    ShuttingDown,
    State,
    Task,
    TaskContext,
)
from tests.integration.sleeper import Sleeper


async def waits_for_ever() -> None:
    await asyncio.Event().wait()


async def test_leaving_normally_waits_for_everything() -> None:
    async def takes_two_turns(ctx: TaskContext) -> str:
        await ctx.sleep(0.01)
        return await ctx.submit(lambda: "child").result()

    async with Runtime() as rt:
        handles = [rt.submit(takes_two_turns) for _ in range(5)]
    assert [each.outcome.result for each in handles if each.outcome] == ["child"] * 5


async def test_leaving_by_an_exception_cancels_everything() -> None:
    handles: list[Handle[Any]] = []
    with pytest.raises(ZeroDivisionError):
        async with Runtime() as rt:
            handles += [rt.submit(waits_for_ever), rt.submit(print, after=handles)]
            raise ZeroDivisionError
    assert [each.state for each in handles] == [State.CANCELLED] * 2


async def test_being_cancelled_while_leaving_cancels_everything() -> None:
    entered = asyncio.Event()
    handles: list[Handle[None]] = []

    async def block() -> None:
        async with Runtime() as rt:
            handles.append(rt.submit(waits_for_ever))
            entered.set()

    task = asyncio.create_task(block())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handles[0].state is State.CANCELLED


async def leave_behind(sleeper: Sleeper, **options: Any) -> None:
    """A Runtime that is left while its agent sleeps."""
    with pytest.raises(AttemptsStillAlive) as caught:
        async with Runtime(grace=0.1) as rt:
            handle = rt.submit(sleeper, id="sleeps", **options)
            await sleeper.falls_asleep()
            handle.cancel()
    assert caught.value.attempts == ("sleeps",)


async def test_who_still_sleeps_is_named_within_grace_and_two_seconds(sleeper: Sleeper) -> None:
    with pytest.raises(AttemptsStillAlive, match="'sleeps'") as caught:
        async with Runtime(grace=0.3) as rt:
            rt.submit(sleeper, id="sleeps", timeout=0.05)
            await sleeper.falls_asleep()
            left = time.monotonic()
    assert time.monotonic() - left < 0.05 + 0.3 + 2
    assert caught.value.attempts == ("sleeps",)


async def test_the_exception_that_the_block_was_left_by_is_the_cause(sleeper: Sleeper) -> None:
    with pytest.raises(AttemptsStillAlive) as caught:
        async with Runtime(grace=0.05) as rt:
            rt.submit(sleeper)
            await sleeper.falls_asleep()
            raise ZeroDivisionError
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_a_coroutine_that_will_not_stop_is_named_too() -> None:
    wake_up = asyncio.Event()

    async def stubborn() -> None:
        while not wake_up.is_set():
            try:
                await wake_up.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(AttemptsStillAlive, match="'stubborn'"):
        async with Runtime(grace=0.05) as rt:
            rt.submit(stubborn, writes="a.txt", timeout=0.01)
    async with Runtime() as rt:
        next_one = rt.submit(lambda: "granted", writes="a.txt")
        assert (await rt.submit(lambda: "free", writes="b.txt")).result == "free"
        assert next_one.state is State.WAITING
        wake_up.set()
        assert (await next_one).result == "granted"


async def next_run(sleeper: Sleeper) -> None:
    """A Runtime that wants what the sleeper of an earlier one holds."""

    async def write() -> None:
        sleeper.log.append("the next run writes")

    async with Runtime() as rt:
        assert (await rt.submit(lambda: "free", writes="other.txt")).result == "free"
        waiting = rt.submit(write, writes="*.md")
        assert (await rt.submit(lambda: "still free", writes="other.txt")).result == "still free"
        assert waiting.state is State.WAITING
        assert "sleeps of run" in str(waiting.why())
        sleeper.wake_up()
        assert (await waiting).succeeded
    assert sleeper.log == ["the sleeper ends", "the next run writes"]


async def test_a_new_runtime_grants_it_only_once_the_thread_has_ended(sleeper: Sleeper) -> None:
    await leave_behind(sleeper, writes="readme.md")
    await next_run(sleeper)


async def test_so_does_the_third_runtime(sleeper: Sleeper) -> None:
    await leave_behind(sleeper, writes="readme.md")
    async with Runtime() as rt:
        assert (await rt.submit(lambda: "free", writes="other.txt")).succeeded
    await next_run(sleeper)


def test_so_does_a_runtime_on_another_loop_after_the_first_was_closed(sleeper: Sleeper) -> None:
    asyncio.run(leave_behind(sleeper, writes="readme.md"))
    asyncio.run(next_run(sleeper))


def test_so_does_a_runtime_on_another_loop_while_the_first_only_stands_still(
    sleeper: Sleeper,
) -> None:
    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(leave_behind(sleeper, writes="readme.md"))
        asyncio.run(next_run(sleeper))
    finally:
        first.run_until_complete(first.shutdown_default_executor())
        first.close()


async def test_what_was_claimed_in_mid_flight_stays_held_too(sleeper: Sleeper) -> None:
    def extends(ctx: TaskContext) -> str:
        ctx.extend(writes="readme.md").wait()
        return sleeper()

    with pytest.raises(AttemptsStillAlive):
        async with Runtime(grace=0.1) as rt:
            handle = rt.submit(extends, id="sleeps")
            await sleeper.falls_asleep()
            handle.cancel()
    await next_run(sleeper)


def test_nothing_is_held_in_another_workspace(
    sleeper: Sleeper, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asyncio.run(leave_behind(sleeper, writes="readme.md"))

    async def elsewhere() -> Outcome[str]:
        async with Runtime(workspace=tmp_path_factory.mktemp("other")) as rt:
            return await rt.submit(lambda: "granted", writes="readme.md")

    assert asyncio.run(elsewhere()).result == "granted"


# -- shutdown ---------------------------------------------------------------------------------


async def test_shutdown_lets_finish_what_runs_and_cancels_what_does_not() -> None:
    running, go_on = asyncio.Event(), asyncio.Event()

    async def finishes() -> str:
        running.set()
        await go_on.wait()
        return "finished"

    async with Runtime(max_parallel=1) as rt:
        first = rt.submit(finishes)
        second = rt.submit(waits_for_ever)
        await running.wait()
        shutdown = asyncio.create_task(rt.shutdown(grace=30))
        assert (await second).status is State.CANCELLED
        with pytest.raises(ShuttingDown):
            rt.submit(waits_for_ever)
        go_on.set()
        await shutdown
        assert (await first).result == "finished"


async def test_shutdown_stops_what_does_not_finish_within_its_grace() -> None:
    async with Runtime() as rt:
        handle = rt.submit(waits_for_ever)
        await rt.shutdown(grace=0.05)
        assert (await handle).status is State.CANCELLED


async def test_shutdown_with_cancel_stops_at_once_what_runs() -> None:
    running, stopped = asyncio.Event(), asyncio.Event()

    async def takes_its_time() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            stopped.set()

    async with Runtime() as rt:
        handle = rt.submit(takes_its_time)
        await running.wait()
        await rt.shutdown(grace=3600, cancel=True)
        assert stopped.is_set()
        assert (await handle).status is State.CANCELLED


async def test_the_grace_of_a_shutdown_with_cancel_is_all_that_stubborn_attempts_get(
    sleeper: Sleeper,
) -> None:
    with pytest.raises(AttemptsStillAlive, match="'sleeps'"):
        async with Runtime(grace=300) as rt:
            rt.submit(sleeper, id="sleeps")
            await sleeper.falls_asleep()
            began = time.monotonic()
            try:
                await rt.shutdown(grace=0, cancel=True)
            finally:
                assert time.monotonic() - began < 0.9  # no last words on top of it


async def test_leaving_after_a_shutdown_in_vain_does_not_wait_once_more(sleeper: Sleeper) -> None:
    began = time.monotonic()
    with pytest.raises(AttemptsStillAlive, match="'sleeps'"):
        async with Runtime(grace=300) as rt:
            rt.submit(sleeper, id="sleeps")
            await sleeper.falls_asleep()
            await rt.shutdown(grace=0.1)
    assert time.monotonic() - began < 30  # far below the grace of the Runtime


async def test_nothing_can_be_submitted_after_the_block_was_left() -> None:
    async with Runtime() as rt:
        pass
    with pytest.raises(NotRunning, match="is over"):
        rt.submit(waits_for_ever)
    with pytest.raises(NotRunning):
        await rt.run([Task("late", waits_for_ever)])
    with pytest.raises(NotRunning):
        await rt.map(print, [1])
    assert rt.progress().total == 0


async def test_nothing_can_be_submitted_before_the_block_was_entered() -> None:
    rt = Runtime()
    looks: list[Callable[[], object]] = [
        lambda: rt.submit(waits_for_ever),
        lambda: rt.why("a"),
        rt.progress,
        rt.events,
        lambda: rt.cancel("a"),
    ]
    for look in looks:
        with pytest.raises(NotRunning, match="enter the Runtime first"):
            look()


async def test_a_runtime_is_one_run() -> None:
    async with Runtime() as rt:
        pass
    with pytest.raises(NotRunning, match="make a new one"):
        async with rt:
            pass


# -- events -----------------------------------------------------------------------------------


async def kinds(rt: Runtime) -> list[Kind]:
    return [event.kind async for event in rt.events()]


@pytest.mark.parametrize("leave", [Runtime.shutdown, lambda rt: asyncio.sleep(0)])
async def test_events_end_with_the_run(leave: Callable[[Runtime], Awaitable[None]]) -> None:
    async with Runtime() as rt:
        following = asyncio.create_task(kinds(rt))
        await rt.submit(lambda: 1)
        await leave(rt)
    told = await following
    assert told[0] is Kind.RUN_STARTED
    assert told[-1] is Kind.RUN_ENDED
    assert told.count(Kind.RUN_ENDED) == 1


async def test_events_can_be_read_after_a_shutdown_inside_the_block() -> None:
    async with Runtime() as rt:
        await rt.submit(lambda: 1)
        await rt.shutdown()
        assert Kind.SETTLED in await kinds(rt)


async def test_a_follower_that_leaves_is_not_missed() -> None:
    async with Runtime() as rt:
        async for event in rt.events():
            assert event.number == 1
            break
        assert (await rt.submit(lambda: 1)).succeeded


async def test_an_event_stream_begun_late_tells_everything_from_the_start() -> None:
    async with Runtime() as rt:
        await rt.submit(lambda: 1)
    events = [event async for event in rt.events()]
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    tail = [event async for event in rt.events(since=events[2].number)]
    assert tail == events[3:]

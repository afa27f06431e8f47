"""One Runtime for several callers, entered by the first and left after the last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from interlock import NotRunning, Runtime, ShuttingDown, State, TaskContext, UsageError
from interlock.errors import AttemptsStillAlive, InvalidOption
from interlock.runtime.shared import SharedRuntime
from interlock.testing.simulated_ports import simulated_ports


def _shared(grace: float = 30.0) -> SharedRuntime:
    return SharedRuntime(
        lambda: Runtime(ports=simulated_ports(), grace=grace), lambda runtime: None
    )


async def test_callers_at_the_same_time_share_one_and_later_ones_get_another() -> None:
    shared = _shared()
    first = await shared.enter()
    assert await shared.enter() is first is shared.runtime
    shared.leave()
    assert (await first.submit(abs, -1)).result == 1  # the other one is still in there
    shared.leave()
    await shared.vacated()
    with pytest.raises(NotRunning):
        first.submit(abs, -1)
    with pytest.raises(NotRunning):
        _ = shared.runtime
    assert await shared.enter() is not first
    shared.leave()
    await shared.vacated()


async def test_who_comes_while_it_is_being_left_gets_the_next_one() -> None:
    shared = _shared()
    first = await shared.enter()
    shared.leave()
    assert await shared.enter() is not first
    shared.leave()
    await shared.vacated()


async def test_it_is_told_of_every_runtime_that_it_opens() -> None:
    opened: list[Runtime] = []
    shared = SharedRuntime(lambda: Runtime(ports=simulated_ports()), opened.append)
    assert [await shared.enter()] == opened
    shared.leave()
    await shared.vacated()


async def test_what_keeps_a_runtime_from_opening_is_told_to_all_who_wanted_in() -> None:
    def make() -> Runtime:
        raise InvalidOption("not like that")

    shared = SharedRuntime(make, lambda runtime: None)
    entering = [asyncio.ensure_future(shared.enter()) for _ in range(2)]
    await asyncio.wait(entering)
    assert [type(each.exception()) for each in entering] == [InvalidOption, InvalidOption]
    with pytest.raises(InvalidOption):
        await shared.enter()  # and each of them may try again


async def test_who_gives_up_coming_in_leaves_nothing_open() -> None:
    shared = _shared()
    entering = asyncio.ensure_future(shared.enter())
    await asyncio.sleep(0)
    entering.cancel()
    await asyncio.wait([entering])
    with pytest.raises(NotRunning):
        _ = shared.runtime


async def test_closing_waits_for_what_runs_and_lets_nobody_in() -> None:
    async def agent() -> int:
        closing.set_result(asyncio.ensure_future(shared.close()))
        await asyncio.sleep(0)
        with pytest.raises(ShuttingDown):
            await shared.enter()
        return 7

    closing: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
    shared = _shared()
    handle = (await shared.enter()).submit(agent)
    await (await closing)
    assert handle.outcome is not None
    assert handle.outcome.result == 7
    await shared.close()
    with pytest.raises(ShuttingDown):
        await shared.enter()


@pytest.mark.parametrize("by", ["asking for it", "cancelling who closes"])
async def test_closing_can_cancel_what_runs(by: str) -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep("1h")

    shared = _shared()
    handle = (await shared.enter()).submit(agent)
    closing = asyncio.ensure_future(shared.close(cancel=by == "asking for it"))
    await asyncio.sleep(0)
    if by == "cancelling who closes":
        closing.cancel()
    await asyncio.wait([closing])
    assert handle.state is State.CANCELLED
    assert closing.cancelled() == (by == "cancelling who closes")


async def test_what_leaving_raises_is_raised_by_close_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent() -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue

    for closes in (True, False):
        stop = asyncio.Event()
        shared = _shared(grace=0.01)
        handle = (await shared.enter()).submit(agent)
        await asyncio.sleep(0)
        handle.cancel()
        with caplog.at_level(logging.ERROR, "interlock"):
            if closes:
                with pytest.raises(AttemptsStillAlive):
                    await shared.close()
            else:
                shared.leave()
                await shared.vacated()
                await asyncio.sleep(0)
        said = [each for each in caplog.records if each.getMessage() == "left_in_trouble"]
        assert len(said) == (not closes)
        stop.set()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)


async def test_another_event_loop_is_told_that_it_cannot_come_in_nor_close() -> None:
    def elsewhere(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with pytest.raises(UsageError, match="in use on another event loop"):
            asyncio.run(call())

    shared = _shared()
    runtime = await shared.enter()
    await asyncio.to_thread(elsewhere, shared.enter)
    await asyncio.to_thread(elsewhere, shared.close)
    assert await shared.enter() is runtime  # nothing was changed by them
    shared.leave()
    shared.leave()
    await shared.vacated()


def test_an_event_loop_may_come_after_another_one_has_left() -> None:
    async def use() -> Runtime:
        runtime = await shared.enter()
        shared.leave()
        await shared.vacated()
        return runtime

    shared = _shared()
    assert asyncio.run(use()) is not asyncio.run(use())

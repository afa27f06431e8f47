"""One Runtime for several callers, entered by the first and left after the last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from interlock import NotRunning, Runtime, ShuttingDown, State, TaskContext, UsageError
from interlock.errors import AttemptsStillAlive, InvalidOption
from interlock.runtime.hosting.host import RuntimeHost
from interlock.testing.simulated_ports import simulated_ports


def _host(grace: float = 30.0) -> RuntimeHost:
    return RuntimeHost(lambda: Runtime(ports=simulated_ports(), grace=grace))


async def test_callers_at_the_same_time_share_one_and_later_ones_get_another() -> None:
    host = _host()
    first = await host.enter()
    assert await host.enter() is first is host.runtime
    host.leave(first)
    assert (await first.submit(abs, -1)).result == 1  # the other one is still in there
    host.leave(first)
    await host.wait_closed()
    with pytest.raises(NotRunning):
        first.submit(abs, -1)
    with pytest.raises(NotRunning):
        _ = host.runtime
    second = await host.enter()
    assert second is not first
    host.leave(second)
    await host.wait_closed()


async def test_who_comes_while_it_is_being_left_gets_the_next_one() -> None:
    host = _host()
    first = await host.enter()
    host.leave(first)
    second = await host.enter()
    assert second is not first
    host.leave(second)
    await host.wait_closed()


async def test_it_is_told_of_every_runtime_that_it_opens() -> None:
    opened: list[Runtime] = []
    host = RuntimeHost(lambda: Runtime(ports=simulated_ports()), opened.append)
    assert [await host.enter()] == opened
    host.leave(opened[0])
    await host.wait_closed()


async def test_what_keeps_a_runtime_from_opening_is_told_to_all_who_wanted_in() -> None:
    def make() -> Runtime:
        raise InvalidOption("not like that")

    host = RuntimeHost(make)
    entering = [asyncio.ensure_future(host.enter()) for _ in range(2)]
    await asyncio.wait(entering)
    assert [type(each.exception()) for each in entering] == [InvalidOption, InvalidOption]
    with pytest.raises(InvalidOption):
        await host.enter()  # and each of them may try again


async def test_who_gives_up_coming_in_leaves_nothing_open() -> None:
    host = _host()
    entering = asyncio.ensure_future(host.enter())
    await asyncio.sleep(0)
    entering.cancel()
    await asyncio.wait([entering])
    with pytest.raises(NotRunning):
        _ = host.runtime


async def test_closing_waits_for_what_runs_and_lets_nobody_in() -> None:
    async def agent() -> int:
        closing.set_result(asyncio.ensure_future(host.close()))
        await asyncio.sleep(0)
        with pytest.raises(ShuttingDown):
            await host.enter()
        return 7

    closing: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
    host = _host()
    handle = (await host.enter()).submit(agent)
    await (await closing)
    assert handle.outcome is not None
    assert handle.outcome.result == 7
    await host.close()
    with pytest.raises(ShuttingDown):
        await host.enter()


@pytest.mark.parametrize("by", ["asking for it", "cancelling who closes"])
async def test_closing_can_cancel_what_runs(by: str) -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep("1h")

    host = _host()
    handle = (await host.enter()).submit(agent)
    closing = asyncio.ensure_future(host.close(cancel=by == "asking for it"))
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
        host = _host(grace=0.01)
        handle = (await host.enter()).submit(agent)
        await asyncio.sleep(0)
        handle.cancel()
        with caplog.at_level(logging.ERROR, "interlock"):
            if closes:
                with pytest.raises(AttemptsStillAlive):
                    await host.close()
            else:
                host.leave(host.runtime)
                await host.wait_closed()
                await asyncio.sleep(0)
        said = [each for each in caplog.records if each.getMessage() == "close_failed"]
        assert len(said) == (not closes)
        stop.set()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)


async def test_another_event_loop_is_told_that_it_cannot_come_in_nor_close() -> None:
    def elsewhere(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with pytest.raises(UsageError, match="in use on another event loop"):
            asyncio.run(call())

    host = _host()
    runtime = await host.enter()
    await asyncio.to_thread(elsewhere, host.enter)
    await asyncio.to_thread(elsewhere, host.close)
    assert await host.enter() is runtime  # nothing was changed by them
    host.leave(runtime)
    host.leave(runtime)
    await host.wait_closed()


def test_an_event_loop_may_come_after_another_one_has_left() -> None:
    async def use() -> Runtime:
        runtime = await host.enter()
        host.leave(runtime)
        await host.wait_closed()
        return runtime

    host = _host()
    assert asyncio.run(use()) is not asyncio.run(use())


async def test_a_run_is_renewed_for_its_only_caller_and_newcomers_get_the_new_one() -> None:
    host = _host()
    first = await host.enter()
    finished: list[Runtime] = []

    async def finish(runtime: Runtime) -> None:
        assert (await runtime.submit(abs, -1)).result == 1
        finished.append(runtime)

    renewing = asyncio.ensure_future(host.renew(first, finish))
    assert not host.is_open
    second = await host.enter()
    assert await renewing is second is not first
    assert finished == [first]
    assert host.callers == 2
    with pytest.raises(UsageError):
        await host.renew(second)
    host.leave(first)  # of no effect: that run is over
    assert host.callers == 2
    with pytest.raises(NotRunning):
        first.submit(abs, -1)
    await host.close()


async def test_what_keeps_a_run_from_being_renewed_is_raised_and_its_caller_has_left() -> None:
    made: list[Runtime] = []

    def make() -> Runtime:
        if made:
            raise InvalidOption("not again")
        made.append(Runtime(ports=simulated_ports()))
        return made[0]

    host = RuntimeHost(make)
    with pytest.raises(InvalidOption):
        await host.renew(await host.enter())
    assert host.is_closed


async def test_a_kept_runtime_stays_open_until_it_is_shut_down() -> None:
    host = _host()
    runtime = await host.keep()
    async with host.shared() as other:
        assert other is runtime
    assert await host.keep() is runtime
    await host.shutdown(1)
    with pytest.raises(ShuttingDown, match="takes no new work"):
        await host.keep()


async def test_who_waits_for_the_next_run_is_refused_when_it_is_shut_down_meanwhile() -> None:
    host = _host()
    first = await host.enter()
    host.leave(first)
    entering = asyncio.ensure_future(host.enter())
    await asyncio.sleep(0)
    await host.close()
    with pytest.raises(ShuttingDown):
        await entering

"""Whatever an agent does, its task has one outcome and its siblings do not notice."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import pytest

from interlock import AgentFailed, Event, Kind, Outcome, Retry, Runtime, State

Raise = Callable[[], NoReturn]


async def beside_siblings(agent: Any, **options: Any) -> Outcome[Any]:
    """The outcome of an agent that runs between two siblings, which must not notice it."""
    go_on = asyncio.Event()
    told: list[Event] = []

    async def waits() -> str:
        await go_on.wait()
        return "on the loop"

    def blocks() -> str:
        return "in a thread"

    async with Runtime(max_parallel=3, grace=10) as rt:
        rt.listen(told.append)
        first = rt.submit(waits)
        nasty = rt.submit(agent, id="nasty", **options)
        last = rt.submit(blocks, after=[], writes="beside.txt")
        outcome = await nasty
        go_on.set()
        assert (await first).result == "on the loop"
        assert (await last).result == "in a thread"
        assert rt.progress().ended == 3
    settled = [each for each in told if each.kind is Kind.SETTLED and each.task_id == "nasty"]
    assert len(settled) == 1
    return outcome


def exits() -> NoReturn:
    sys.exit(3)


def interrupts() -> NoReturn:
    raise KeyboardInterrupt


def cancels_itself() -> NoReturn:
    raise asyncio.CancelledError


def leaves_a_generator() -> NoReturn:
    raise GeneratorExit


def stops_an_iteration() -> NoReturn:
    raise StopIteration


def raises_a_group() -> NoReturn:
    raise BaseExceptionGroup("several", [ValueError("one"), KeyboardInterrupt()])


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class ExitsWhenPrinted(Exception):
    def __str__(self) -> str:
        raise SystemExit


def raises_the_unprintable() -> NoReturn:
    raise Unprintable


def raises_what_exits_when_printed() -> NoReturn:
    raise ExitsWhenPrinted


NASTY = [
    (exits, "SystemExit"),
    (interrupts, "KeyboardInterrupt"),
    (cancels_itself, "CancelledError"),
    (leaves_a_generator, "GeneratorExit"),
    (raises_a_group, "BaseExceptionGroup"),
    (raises_the_unprintable, "Unprintable"),
    (raises_what_exits_when_printed, "ExitsWhenPrinted"),
]


@pytest.mark.parametrize(("nasty", "error"), [*NASTY, (stops_an_iteration, "StopIteration")])
async def test_what_a_blocking_agent_raises_is_its_own_failure(nasty: Raise, error: str) -> None:
    outcome = await beside_siblings(nasty)
    assert outcome.status is State.FAILED
    assert outcome.error is not None
    assert outcome.error.type == error
    assert outcome.attempts == 1


@pytest.mark.parametrize(("nasty", "error"), [*NASTY, (stops_an_iteration, "RuntimeError")])
async def test_what_an_async_agent_raises_is_its_own_failure(nasty: Raise, error: str) -> None:
    async def agent() -> None:
        nasty()

    outcome = await beside_siblings(agent)
    assert outcome.status is State.FAILED
    assert outcome.error is not None
    assert outcome.error.type == error
    assert outcome.attempts == 1


@pytest.mark.parametrize(("nasty", "error"), NASTY)
async def test_what_is_raised_after_a_wait_is_the_same(nasty: Raise, error: str) -> None:
    async def agent() -> None:
        await asyncio.sleep(0)
        nasty()

    outcome = await beside_siblings(agent)
    assert outcome.error is not None
    assert outcome.error.type == error


async def test_an_exit_code_is_in_the_message() -> None:
    outcome = await beside_siblings(exits)
    assert outcome.error is not None
    assert outcome.error.message == "the agent called sys.exit(3)"
    assert not outcome.error.retryable


async def value() -> int:
    return 42


def hands_out_a_coroutine() -> Coroutine[Any, Any, int]:
    return value()


async def hands_out_a_coroutine_later() -> Coroutine[Any, Any, int]:
    return value()


@pytest.mark.parametrize("agent", [hands_out_a_coroutine, hands_out_a_coroutine_later])
async def test_a_coroutine_is_no_result(agent: Any) -> None:
    outcome = await beside_siblings(agent)  # a warning that nobody awaits it would fail this test
    assert outcome.status is State.FAILED
    assert "submit the async function itself" in outcome.reason


async def test_an_agent_that_blocks_the_loop_makes_its_siblings_late_and_no_more() -> None:
    async def blocks_the_loop() -> str:
        time.sleep(1.0)  # noqa: TID251 - this is what it does wrong
        return "done"

    async def quick() -> str:
        await asyncio.sleep(0.01)
        return "late"

    async with Runtime(max_parallel=4) as rt:
        # Its time is up while the loop is blocked, but it has long ended when anybody can look.
        sibling = rt.submit(quick, timeout=0.5)
        thread = rt.submit(lambda: "in a thread", timeout=0.5)
        assert (await rt.submit(blocks_the_loop)).result == "done"
        assert (await sibling).result == "late"
        assert (await thread).result == "in a thread"


async def test_timeouts_come_true_on_a_loop_that_is_blocked_again_and_again() -> None:
    over = asyncio.Event()

    async def blocks_in_pieces() -> None:
        while not over.is_set():
            time.sleep(0.08)  # noqa: TID251 - this is what it does wrong
            await asyncio.sleep(0)

    async with Runtime() as rt:
        rude = rt.submit(blocks_in_pieces)
        outcome = await rt.submit(asyncio.Event().wait, timeout=0.2)
        over.set()
        assert outcome.status is State.TIMED_OUT
        assert (await rude).succeeded


async def test_an_agent_that_swallows_its_cancellation_three_times_ends_within_the_grace() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while swallowed < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1

    outcome = await beside_siblings(stubborn, timeout=0.05)
    assert outcome.status is State.TIMED_OUT
    assert swallowed == 3


async def test_a_thread_that_outlives_its_agent_is_no_concern_of_its_task() -> None:
    go_on = threading.Event()

    def spawns() -> threading.Thread:
        thread = threading.Thread(target=go_on.wait, args=(60,))
        thread.start()
        return thread

    outcome = await beside_siblings(spawns)
    assert outcome.result is not None
    assert outcome.result.is_alive()
    go_on.set()


@pytest.mark.parametrize("retry_after", [-1, float("nan"), float("inf"), "soon", None])
async def test_a_senseless_retry_after_is_no_retry_after(retry_after: Any) -> None:
    async def agent() -> None:
        raise AgentFailed("busy", retry_after=retry_after)

    outcome = await beside_siblings(agent, retry=Retry(attempts=2, backoff=0))
    assert outcome.status is State.FAILED
    assert outcome.attempts == 2


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_result_that_contains_itself_is_a_failure(blocking: bool) -> None:
    endless: list[Any] = []
    endless.append(endless)

    async def agent() -> list[Any]:
        return endless

    outcome = await beside_siblings((lambda: endless) if blocking else agent)
    assert outcome.status is State.FAILED
    assert "contains itself" in outcome.reason


async def test_a_result_that_breaks_whoever_looks_at_it_is_a_failure() -> None:
    class Broken:
        def __getattribute__(self, name: str) -> NoReturn:
            raise SystemError("do not look")

    async def agent() -> Broken:
        return Broken()

    assert (await beside_siblings(agent)).status is State.FAILED
    assert (await beside_siblings(Broken)).status is State.FAILED

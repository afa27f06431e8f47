"""The limiter with real threads and loops, by the real clock.

The times that are judged exactly are those at which the limiter itself let a call through: between
that and the first line of the call, a busy machine may put any pause.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from interlock import AttemptOver, LLMLimiter, Runtime, ShuttingDown

RATE = 40


class Clock:
    """The real clock; remembers what it last told each thread."""

    def __init__(self) -> None:
        self._told = threading.local()

    def __call__(self) -> float:
        self._told.last = now = time.monotonic()
        return now

    def told_last(self) -> float:
        last: float = self._told.last
        return last


class Calls:
    """When calls were let through, and when they began."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.let_through: list[float] = []
        self.begun: list[float] = []

    def blocking(self) -> None:
        self.let_through.append(self._clock.told_last())
        self.begun.append(time.monotonic())

    async def asynchronous(self) -> None:
        self.blocking()


def closest(times: list[float], apart: int) -> float:
    """The least time from any call to the one that comes so many later."""
    ordered = sorted(times)
    return min(b - a for a, b in zip(ordered, ordered[apart:], strict=False))


def test_the_loop_and_threads_together_hold_a_limit_in_real_time() -> None:
    clock = Clock()
    limiter, calls = LLMLimiter(RATE, clock=clock), Calls(clock)

    def in_thread() -> None:
        for _ in range(10):
            limiter.call_sync(calls.blocking)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(asyncio.to_thread(in_thread))
            for _ in range(40):
                group.create_task(limiter.call(calls.asynchronous))

    asyncio.run(main())
    assert len(calls.begun) == 80
    # No two closer than 1 / RATE, hence no second with more than RATE.
    assert closest(calls.let_through, 1) >= 1 / RATE - 1e-9
    assert closest(calls.let_through, RATE) >= 1.0 - 1e-6
    assert closest(calls.begun, RATE) >= 0.5


def test_loops_in_several_threads_share_one_allowance() -> None:
    clock = Clock()
    limiter, calls = LLMLimiter(RATE, clock=clock), Calls(clock)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(limiter.call(calls.asynchronous))

    with ThreadPoolExecutor(3) as pool:
        for each in [pool.submit(asyncio.run, main()) for _ in range(3)]:
            each.result()
    assert len(calls.begun) == 30
    assert closest(calls.let_through, 1) >= 1 / RATE - 1e-9


SESSION: ContextVar[str] = ContextVar("session")


def test_a_blocking_function_that_is_awaited_does_not_block_the_loop() -> None:
    async def main() -> None:
        SESSION.set("mine")
        begun, let_go = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def blocks(text: str, *, times: int) -> str:
            loop.call_soon_threadsafe(begun.set)
            assert let_go.wait(60)
            return SESSION.get() + text * times

        calling = asyncio.create_task(LLMLimiter().call(blocks, "!", times=2))
        await begun.wait()
        let_go.set()
        assert await calling == "mine!!"

    asyncio.run(main())


def test_blocking_calls_do_not_wait_for_each_other() -> None:  # pitfall 48
    async def main() -> None:
        together = threading.Barrier(50)
        limiter = LLMLimiter(1000)
        async with asyncio.TaskGroup() as group:
            for _ in range(50):  # more than a pool of threads has
                group.create_task(limiter.call(together.wait, 60))

    asyncio.run(main())


def test_an_async_function_can_be_called_from_a_thread() -> None:
    async def doubled(value: int) -> int:
        await asyncio.sleep(0)
        return 2 * value

    limiter = LLMLimiter(1000)
    assert limiter.call_sync(doubled, 21) == 42
    assert limiter.of("m").call_sync(lambda: doubled(4)) == 8
    assert asyncio.run(limiter.call(lambda: doubled(5))) == 10


def test_what_a_call_raises_reaches_its_caller() -> None:
    def fails() -> None:
        raise LookupError("gone")

    limiter = LLMLimiter(1000)
    with pytest.raises(LookupError, match="gone"):
        limiter.call_sync(fails)
    with pytest.raises(LookupError, match="gone"):
        asyncio.run(limiter.call(fails))


def test_a_loop_that_is_blocked_does_not_hold_up_threads() -> None:
    limiter = LLMLimiter(20)
    blocked, unblock = threading.Event(), threading.Event()

    async def main() -> None:
        limiter.hold(0.05)
        waiting = [asyncio.create_task(limiter.call(int)) for _ in range(3)]
        await asyncio.sleep(0)  # they stand in line, and the first is to go soon
        blocked.set()
        assert unblock.wait(60)
        await asyncio.wait(waiting)

    loop = threading.Thread(target=asyncio.run, args=(main(),))
    loop.start()
    assert blocked.wait(60)
    assert [limiter.call_sync(int) for _ in range(3)] == [0, 0, 0]
    unblock.set()
    loop.join(60)
    assert limiter.waiting() == {}


def test_a_loop_that_was_closed_in_the_middle_is_passed() -> None:
    limiter = LLMLimiter(20)
    loop = asyncio.new_event_loop()
    limiter.hold(0.05)
    left = [loop.create_task(limiter.call(int)) for _ in range(2)]
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert limiter.call_sync(int) == 0
    for each in left:
        each._log_destroy_pending = False  # type: ignore[attr-defined]
        each.get_coro().close()


def _cancelled_while_waiting(call: Callable[[LLMLimiter], object]) -> list[BaseException]:
    raised: list[BaseException] = []

    async def main() -> None:
        limiter = LLMLimiter(1000)
        limiter.hold("1h")
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def agent() -> None:
            loop.call_soon_threadsafe(begun.set)
            try:
                call(limiter)
            except BaseException as error:
                raised.append(error)
                raise

        async with Runtime() as rt:
            handle = rt.submit(agent)
            await begun.wait()
            handle.cancel()
        assert limiter.waiting() == {}

    asyncio.run(main())
    return raised


def test_a_thread_that_is_told_to_stop_no_longer_waits_for_its_turn() -> None:
    raised = _cancelled_while_waiting(lambda limiter: limiter.call_sync(int))
    assert [type(each) for each in raised] == [AttemptOver]


def test_an_attempt_that_is_over_uses_nothing_up() -> None:
    calls: list[Any] = []

    async def main() -> None:
        begun, over = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def agent() -> None:
            loop.call_soon_threadsafe(begun.set)
            assert over.wait(60)
            LLMLimiter().call_sync(calls.append, 1)

        async with Runtime() as rt:
            handle = rt.submit(agent)
            await begun.wait()
            handle.cancel()
            await handle
            over.set()

    asyncio.run(main())
    assert calls == []


def test_threads_that_wait_are_told_when_it_is_closed() -> None:
    with LLMLimiter(1000) as limiter, ThreadPoolExecutor(2) as pool:
        limiter.hold("1h")
        waiting = [pool.submit(limiter.call_sync, int) for _ in range(2)]
        limiter.close()
        for each in waiting:
            with pytest.raises(ShuttingDown):
                each.result(60)

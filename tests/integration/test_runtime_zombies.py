"""Threads that do not stop when they should: whoever waits is answered, nothing is given away."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

from interlock import AttemptOver, Handle, Kind, Retry, Runtime, State, TaskContext
from interlock.model.why import HeldClaim, NoCapacity, PreviousAttemptAlive
from tests.integration.sleeper import Sleeper


async def test_the_caller_is_answered_within_two_seconds_of_the_timeout(sleeper: Sleeper) -> None:
    async with Runtime() as rt:
        handle = rt.submit(sleeper, timeout=0.2)
        await sleeper.falls_asleep()
        asleep = time.monotonic()
        outcome = await handle
        assert time.monotonic() - asleep < 2.2
        assert outcome.status is State.TIMED_OUT
        assert outcome.result is None
        sleeper.wake_up()


async def test_a_blocked_caller_is_answered_as_well(sleeper: Sleeper) -> None:
    async with Runtime() as rt:
        handle = rt.submit(sleeper, timeout=0.2)
        outcome = await asyncio.to_thread(handle.wait)
        assert outcome.status is State.TIMED_OUT
        sleeper.wake_up()


async def test_who_wants_its_file_starts_only_after_the_thread_has_ended(sleeper: Sleeper) -> None:
    def writes() -> None:
        sleeper.log.append("the next one starts")

    async with Runtime() as rt:
        first = rt.submit(sleeper, id="first", writes="a.txt", timeout=0.05)
        second = rt.submit(writes, writes="a.txt")
        assert (await first).status is State.TIMED_OUT
        [reason] = second.why().reasons
        assert isinstance(reason, HeldClaim)
        assert (reason.holder, reason.stopping) == ("first", True)
        assert second.state is State.WAITING
        assert rt.progress().zombies == 1
        # What does not want its file goes on meanwhile.
        assert (await rt.submit(lambda: "free", writes="b.txt")).result == "free"
        assert second.state is State.WAITING
        sleeper.wake_up()
        assert (await second).succeeded
    assert sleeper.log == ["the sleeper ends", "the next one starts"]


async def test_it_keeps_its_slot_too(sleeper: Sleeper) -> None:
    async with Runtime(max_parallel=1) as rt:
        first = rt.submit(sleeper, timeout=0.05)
        second = rt.submit(lambda: sleeper.log.append("the next one starts"))
        assert (await first).status is State.TIMED_OUT
        [reason] = second.why().reasons
        assert isinstance(reason, NoCapacity)
        sleeper.wake_up()
        await second
    assert sleeper.log == ["the sleeper ends", "the next one starts"]


async def test_a_further_attempt_waits_until_the_last_one_is_gone() -> None:
    running = 0
    most = 0
    waiting = threading.Semaphore(0)
    go_on = threading.Event()

    def agent(ctx: TaskContext) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        waiting.release()
        if ctx.attempt == 1:
            assert go_on.wait(60)
        running -= 1
        return ctx.attempt

    async with Runtime() as rt:
        handle = rt.submit(agent, timeout=0.2, retry=Retry(attempts=2, backoff=0))
        assert await asyncio.to_thread(waiting.acquire, timeout=60)
        async for event in rt.events():
            if event.kind is Kind.RETRYING:
                break
        assert any(isinstance(each, PreviousAttemptAlive) for each in handle.why().reasons)
        go_on.set()
        outcome = await handle
    assert (outcome.result, outcome.attempts, most) == (2, 2, 1)


async def test_a_late_success_changes_nothing(sleeper: Sleeper) -> None:
    settled = []
    async with Runtime() as rt:
        rt.listen(lambda event: settled.append(event) if event.kind is Kind.SETTLED else None)
        handle = rt.submit(sleeper, timeout=0.05)
        outcome = await handle
        sleeper.wake_up()
    assert handle.outcome is outcome
    assert outcome.status is State.TIMED_OUT
    assert len(settled) == 1


async def test_an_attempt_that_is_over_has_no_more_effects() -> None:
    go_on = threading.Event()
    refused: list[str] = []

    def agent(ctx: TaskContext) -> None:
        assert go_on.wait(60)
        assert ctx.cancelled()
        effects: dict[str, Callable[[], object]] = {
            "log": lambda: ctx.log("still here"),
            "report": lambda: ctx.report(0.5),
            "usage": lambda: ctx.usage(cost=1.0),
            "submit": lambda: ctx.submit(print),
            "run": lambda: ctx.run([]).wait(),
            "map": lambda: ctx.map(print, [1]).wait(),
            "sleep": lambda: ctx.sleep(60).wait(),
            "extend": lambda: ctx.extend(writes="more.txt").wait(),
            "ask": lambda: ctx.ask("May I?").wait(),
        }
        for name, effect in effects.items():
            try:
                effect()
            except AttemptOver:
                refused.append(name)

    async with Runtime() as rt:
        handle = rt.submit(agent, timeout=0.05)
        outcome = await handle
        go_on.set()
    assert refused == ["log", "report", "usage", "submit", "run", "map", "sleep", "extend", "ask"]
    assert outcome.usage.cost == 0.0


async def test_a_wait_in_a_thread_ends_when_the_attempt_is_told_to_stop() -> None:
    woken: list[str] = []

    def agent(ctx: TaskContext) -> None:
        try:
            ctx.sleep("1h").wait()
        except AttemptOver as over:
            woken.append(str(over))

    async with Runtime() as rt:
        assert (await rt.submit(agent, id="sleepy", timeout=0.05)).status is State.TIMED_OUT
    assert len(woken) == 1
    assert "'sleepy' was told to stop" in woken[0]


async def test_a_cancelled_thread_keeps_its_files_until_it_ends(
    sleeper: Sleeper, workspace: Path
) -> None:
    file = workspace / "shared.txt"
    halfway = threading.Event()
    go_on = threading.Event()

    def slow_writer() -> None:
        with file.open("a") as opened:
            opened.write("one ")
            halfway.set()
            assert go_on.wait(60)
            opened.write("two ")

    def next_writer() -> None:
        with file.open("a") as opened:
            opened.write("three")

    async with Runtime() as rt:
        first = rt.submit(slow_writer, writes="shared.txt")
        second: Handle[None] = rt.submit(next_writer, writes="shared.txt")
        assert await asyncio.to_thread(halfway.wait, 60)
        assert first.cancel()
        assert (await first).status is State.CANCELLED
        assert not second.done()
        go_on.set()
        await second
    assert file.read_text() == "one two three"

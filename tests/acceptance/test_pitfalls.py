"""Bugs that systems of this kind really had; docs/pitfalls.md says which test covers which."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    AttemptsStillAlive,
    InterlockError,
    Kind,
    Outcome,
    Retry,
    Runtime,
    ShuttingDown,
    State,
    Task,
    TaskContext,
)
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel

pytestmark = pytest.mark.usefixtures("workspace")
ROOT = Path(__file__).parents[2]


async def waits_for_ever() -> None:
    await asyncio.Event().wait()


def fails() -> None:
    raise OSError("as planned")


# -- the table --------------------------------------------------------------------------------

TABLE = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", TABLE, re.MULTILINE)


def test_the_table_of_pitfalls_is_complete() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 49))


def test_the_tests_that_the_table_names_exist() -> None:
    for _, pitfall, shown_by in ROWS:
        named = re.findall(r"`([^`]+)::(test_\w+)`", shown_by)
        assert named or "waits for" in shown_by, pitfall
        for file, test in named:
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), pitfall


# -- locks and claims -------------------------------------------------------------------------


async def test_claims_do_not_leak_when_the_caller_is_cancelled_before_it_runs() -> None:
    async with Runtime() as rt:
        for turns in range(6):
            handle = rt.submit(waits_for_ever, writes="a.txt")
            for _ in range(turns):
                await asyncio.sleep(0)
            handle.cancel()
            assert (await handle).status is State.CANCELLED
            assert (await rt.submit(lambda: "free", writes="a.txt")).result == "free"


async def test_claims_do_not_leak_when_acquisition_fails_half_way() -> None:
    """`a.txt` is free and `b.txt` is not: whoever wants both holds neither meanwhile."""
    async with Runtime() as rt:
        holder = rt.submit(waits_for_ever, writes="b.txt")
        both = rt.submit(waits_for_ever, writes=["a.txt", "b.txt"])
        assert (await rt.submit(lambda: "free", writes="a.txt")).result == "free"
        both.cancel()
        holder.cancel()
        assert (await rt.submit(lambda: "free", writes=["a.txt", "b.txt"])).result == "free"


async def test_a_holder_of_the_same_name_in_a_later_run_releases_nothing() -> None:
    go_on = threading.Event()
    asleep = asyncio.Event()
    loop = asyncio.get_running_loop()

    def sleeps() -> None:
        loop.call_soon_threadsafe(asleep.set)
        assert go_on.wait(60)

    with pytest.raises(AttemptsStillAlive):
        async with Runtime(grace=0.05) as first:
            handle = first.submit(sleeps, id="wave-0", writes="a.txt")
            await asleep.wait()
            handle.cancel()
    async with Runtime() as second:
        assert second.run_id != first.run_id
        assert (await second.submit(lambda: 1, id="wave-0", writes="b.txt")).succeeded
        waiting = second.submit(lambda: 1, id="wave-1", writes="a.txt")
        assert (await second.submit(lambda: 1, id="wave-2", writes="b.txt")).succeeded
        assert waiting.state is State.WAITING
        go_on.set()
        assert (await waiting).succeeded


async def test_two_tasks_exclude_each_other_though_nobody_handed_them_a_lock() -> None:
    inside = 0

    def alone() -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        inside -= 1

    async with Runtime(max_parallel=8) as rt:
        handles = [rt.submit(alone, writes="shared.txt") for _ in range(50)]
        result = await rt.run([Task(f"t{i}", alone, writes="./shared.txt") for i in range(50)])
        assert result.all_succeeded
        assert all([(await each).succeeded for each in handles])


async def test_a_second_cancellation_does_not_interrupt_a_release() -> None:
    cleaned_up = []

    async def cleans_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append("the claims are still held")

    entered = asyncio.Event()

    async def block() -> None:
        async with Runtime(grace=30) as rt:
            rt.submit(cleans_up, writes="a.txt")
            await asyncio.sleep(0)
            entered.set()

    task = asyncio.create_task(block())
    await entered.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(cleaned_up) == 1
    async with Runtime() as rt:
        assert (await rt.submit(lambda: "free", writes="a.txt")).result == "free"


async def test_a_release_that_fails_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of ours: everybody who waits is told, and the run does not hang."""
    handle = Kernel.handle

    def breaks(self: Kernel, stimulus: s.Stimulus, now: float) -> Any:
        if isinstance(stimulus, s.Reports):
            raise RuntimeError("a release that fails")
        return handle(self, stimulus, now)

    monkeypatch.setattr(Kernel, "handle", breaks)
    with pytest.raises(InterlockError, match="a release that fails"):
        async with Runtime(grace=1) as rt:
            first = rt.submit(lambda: 1)
            with pytest.raises(InterlockError, match="a bug in Interlock"):
                await first


# -- counting and reporting -------------------------------------------------------------------


async def test_tasks_refused_cancelled_or_skipped_are_missing_nowhere() -> None:
    running = asyncio.Event()

    async def runs() -> None:
        running.set()
        await asyncio.Event().wait()

    async with Runtime(max_parallel=1) as rt:
        failed = rt.submit(fails, id="failed")
        await failed
        rt.submit(runs, id="running")
        rt.submit(print, id="skipped", after="failed")
        rt.submit(print, id="cancelled").cancel()
        rt.submit(print, id="queued")
        rt.submit(print, id="blocked", after="queued")
        await running.wait()
        await rt.shutdown(grace=0.05)
        with pytest.raises(ShuttingDown):
            rt.submit(print, id="refused")
        progress = rt.progress()
    assert {each.task_id: str(each.status) for each in rt.outcomes} == {
        "failed": "failed",
        "running": "cancelled",
        "skipped": "skipped",
        "cancelled": "cancelled",
        "queued": "cancelled",
        "blocked": "skipped",
    }
    assert progress.total == progress.ended == 6
    assert (progress.failed, progress.cancelled, progress.skipped) == (1, 3, 2)
    settled = [e.task_id async for e in rt.events() if e.kind is Kind.SETTLED]
    assert sorted(settled) == sorted(each.task_id for each in rt.outcomes)


async def test_tasks_queued_for_a_slot_count_as_waiting() -> None:
    async with Runtime(max_parallel=2) as rt:
        handles = [rt.submit(waits_for_ever) for _ in range(10)]
        progress = rt.progress()
        assert (progress.running, progress.waiting) == (2, 8)
        # and blocking agents do not sit in threads while they wait
        before = set(threading.enumerate())
        handles += [rt.submit(fails) for _ in range(100)]
        assert rt.progress().waiting == 108
        assert set(threading.enumerate()) <= before
        for handle in handles:
            handle.cancel()


async def test_a_failed_clean_up_is_a_failure() -> None:
    async def cannot_clean_up() -> str:
        try:
            return "done"
        finally:
            fails()

    async with Runtime() as rt:
        assert (await rt.submit(cannot_clean_up)).reason == "OSError: as planned"


async def test_no_work_is_dropped_beyond_the_cap() -> None:
    async with Runtime(max_parallel=2) as rt:
        outcomes = await rt.map(lambda number: number, range(500))
        assert [each.result for each in outcomes] == list(range(500))
        alone = await rt.run([Task("alone", lambda: 1)])
        assert alone.all_succeeded


# -- failure, timeout, cancellation -----------------------------------------------------------


async def test_one_failure_of_27_keeps_26_results_and_ids() -> None:
    def agent(number: int) -> int:
        if number == 13:
            fails()
        return number

    async with Runtime() as rt:
        result = await rt.run([Task(f"t{i}", agent, args=(i,)) for i in range(27)])
    assert [each.task_id for each in result] == [f"t{i}" for i in range(27)]
    assert [each.result for each in result if each.succeeded] == [*range(13), *range(14, 27)]


def returns_a_failure() -> Outcome[None]:
    return Outcome("inner", State.FAILED)


async def runs_out_of_time(ctx: TaskContext) -> None:
    await ctx.sleep("1h")


async def fails_as_a_child(ctx: TaskContext) -> None:
    await ctx.submit(fails).result()


@pytest.mark.parametrize("agent", [fails, returns_a_failure, runs_out_of_time, fails_as_a_child])
async def test_fail_fast_reacts_to_every_kind_of_failure(agent: Any) -> None:
    timeout = 0.05 if agent is runs_out_of_time else None
    async with Runtime() as rt:
        tasks = [Task("bad", agent, timeout=timeout), Task("slow", waits_for_ever)]
        result = await rt.run(tasks, fail_fast=True)
    assert result["slow"].status is State.CANCELLED


async def test_dependents_of_a_failed_task_do_not_run() -> None:
    called: list[str] = []
    ends: list[Callable[[Runtime], Awaitable[Any]]] = []

    async def lets_fail(rt: Runtime) -> None:
        await rt.submit(fails, id="failed")

    async def lets_time_out(rt: Runtime) -> None:
        await rt.submit(waits_for_ever, id="timed_out", timeout=0.01)

    async def cancels(rt: Runtime) -> None:
        rt.submit(waits_for_ever, id="cancelled").cancel()

    ends += [lets_fail, lets_time_out, cancels]
    async with Runtime() as rt:
        for end in ends:
            await end(rt)
        for first in ("failed", "timed_out", "cancelled"):
            rt.submit(called.append, first, id=f"after {first}", after=first)
            rt.submit(called.append, first, id=f"after after {first}", after=f"after {first}")
    assert called == []
    assert rt.progress().skipped == 6


async def test_a_timeout_does_not_count_the_time_spent_waiting_for_a_slot() -> None:
    async def slow(ctx: TaskContext) -> None:
        await ctx.sleep(0.3)

    async with Runtime(max_parallel=1) as rt:
        first = rt.submit(slow)
        second = rt.submit(lambda: "in time", timeout=0.25)
        assert (await second).result == "in time"
        assert (await first).succeeded


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_an_agent_is_not_busy_after_a_cancel_or_timeout(how: str) -> None:
    async with Runtime(capacity={"agent:architect": 1}) as rt:
        timeout = 0.01 if how == "timeout" else None
        first = rt.submit(waits_for_ever, uses="agent:architect", timeout=timeout)
        if how == "cancel":
            first.cancel()
        second = rt.submit(lambda: "not busy", uses="agent:architect")
        assert (await second).result == "not busy"
        assert not (await first).succeeded


async def test_the_backoff_holds_neither_slot_nor_claims() -> None:
    failed = asyncio.Event()

    async def fails_once(ctx: TaskContext) -> int:
        if ctx.attempt == 1:
            failed.set()
            raise OSError("once")
        return ctx.attempt

    async with Runtime(max_parallel=1) as rt:
        handle = rt.submit(fails_once, writes="a.txt", retry=Retry(attempts=2, backoff=3600))
        await failed.wait()
        assert (await rt.submit(lambda: "meanwhile", writes="a.txt")).result == "meanwhile"
        assert handle.state is State.RETRYING
        handle.cancel()


async def test_a_limit_holds_however_many_submit_at_once() -> None:
    running = most = 0
    lock = threading.Lock()

    def counts() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1

    async with Runtime(max_parallel=3) as rt:

        def submits() -> None:
            for handle in [rt.submit(counts) for _ in range(20)]:
                handle.wait()

        threads = [threading.Thread(target=submits) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
    assert rt.progress().succeeded == 160
    assert most <= 3


async def test_a_factory_that_fails_leaves_no_task_pending() -> None:
    class Factory:
        def __init__(self) -> None:
            raise OSError("no licence")

    async with Runtime() as rt:
        outcome = await rt.submit(Factory, uses="agent:x", retry=Retry(attempts=2, backoff=0))
        assert (outcome.status, outcome.attempts) == (State.FAILED, 2)
        assert rt.progress().ended == rt.progress().total


# -- ids, words, limits -----------------------------------------------------------------------


async def test_ids_made_in_the_same_second_do_not_collide() -> None:
    assert len({Runtime().run_id for _ in range(200)}) == 200
    async with Runtime() as rt:
        assert len({rt.submit(print).task_id for _ in range(200)}) == 200


async def test_priority_boosts_reach_the_queue() -> None:
    order: list[str] = []

    async def tells(ctx: TaskContext) -> None:
        order.append(ctx.task.id)

    async with Runtime(max_parallel=1) as rt:
        rt.pause()
        for name in ("one", "two", "three"):
            rt.submit(tells, id=name)
        rt.prioritize("three", 10)
        rt.resume()
    assert order[0] == "three"


async def test_hundreds_of_calls_in_one_turn_are_bounded() -> None:
    running = most = 0

    async def counts() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    async with Runtime(max_parallel=5) as rt:
        for _ in range(500):
            rt.submit(counts)
    assert most == 5


async def test_waiters_fill_no_threads_so_that_an_unrelated_task_starts_at_once() -> None:
    go_on = threading.Event()

    def holds() -> None:
        assert go_on.wait(60)

    async with Runtime(max_parallel=2) as rt:
        rt.submit(holds, writes="a.txt")
        for _ in range(300):
            rt.submit(lambda: None, writes="a.txt")
        assert (await rt.submit(lambda: "at once", writes="b.txt")).result == "at once"
        assert rt.progress().waiting == 300
        go_on.set()

"""The way into a Runtime for other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from interlock import Handle, InterlockError, InvalidPattern, NotAnAgent, Runtime, State, Task
from interlock.errors import DuplicateId, NotRunning
from interlock.runtime.loop_thread import LoopThread
from tests.unit.execution.worlds import story


async def in_a_thread(work: Callable[[], object]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)


@story
async def test_what_is_posted_is_called_in_order_on_the_loop() -> None:
    door = LoopThread(asyncio.get_running_loop())
    called: list[tuple[int, int]] = []

    def note(number: int) -> None:
        called.append((number, threading.get_ident()))

    def work() -> None:
        for number in range(100):
            door.post(note, number)
        door.call(note, 100)

    await in_a_thread(work)
    assert called == [(number, threading.get_ident()) for number in range(101)]


@story
async def test_one_that_raises_costs_the_others_nothing() -> None:
    loop = asyncio.get_running_loop()
    door, called, told = LoopThread(loop), list[int](), list[object]()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    done = asyncio.Event()

    def work() -> None:
        called.append(1)
        raise LookupError

    door.post(work)
    door.post(called.append, 2)
    door.post(done.set)
    await done.wait()
    assert called == [1, 2]
    assert [type(each) for each in told] == [LookupError]


@story
async def test_many_posts_wake_the_loop_once_and_make_one_turn() -> None:
    turns: list[int] = []
    called: list[int] = []
    done = asyncio.Event()

    def together(work: Callable[[], None]) -> None:
        work()
        turns.append(len(called))

    door = LoopThread(asyncio.get_running_loop(), together)
    for number in range(50):  # from the loop's own thread, so that it cannot come in between
        door.post(called.append, number)
    door.post(done.set)
    await done.wait()
    assert turns == [50]


def test_a_closed_loop_is_told() -> None:
    loop = asyncio.new_event_loop()
    door = LoopThread(loop)
    door.post(print)
    loop.close()
    with pytest.raises(NotRunning):
        door.post(print)


@story
async def test_a_task_is_posted_without_waiting_and_its_handle_comes_later() -> None:
    taken: list[Handle[object] | InterlockError] = []
    settled = asyncio.Event()

    def take(handle: Handle[object] | InterlockError) -> None:
        taken.append(handle)
        assert isinstance(handle, Handle)
        handle.when_settled(lambda _: settled.set())

    async with Runtime() as rt:
        await in_a_thread(lambda: rt.post(rt.prepare(Task("a", lambda: 42)), take))
        await settled.wait()
        assert isinstance(taken[0], Handle)
        assert taken[0].outcome is not None
        assert taken[0].outcome.result == 42
        taken[0].when_settled(lambda error: taken.append(InterlockError(str(error))))
        assert str(taken[1]) == "None"  # at once, and without an error


@story
async def test_what_is_wrong_with_a_task_raises_before_it_is_posted() -> None:
    async with Runtime() as rt:
        with pytest.raises(NotAnAgent):
            rt.prepare(Task("a", 42))
        with pytest.raises(InvalidPattern):
            rt.prepare(Task("a", print, writes="src/["))


@story
async def test_what_the_run_has_no_place_for_comes_back_as_an_error() -> None:
    refused: list[Handle[object] | InterlockError] = []
    async with Runtime() as rt:
        rt.submit(asyncio.sleep, 0, id="a")
        rt.post(rt.prepare(Task("a", print)), refused.append)
        await rt.submit(asyncio.sleep, 0)
    assert [type(each) for each in refused] == [DuplicateId]


@story
async def test_several_tasks_are_submitted_together_or_not_at_all() -> None:
    async with Runtime() as rt:
        with pytest.raises(DuplicateId):
            rt.submit_all([Task("a", print), Task("a", print)])
        assert rt.progress().total == 0
        first, second = rt.submit_all([Task("b", int, after="a"), Task("a", int)])
        assert (await first).status is (await second).status is State.SUCCEEDED


@story
async def test_of_tasks_that_are_submitted_together_the_first_failure_can_cancel_the_others() -> (
    None
):
    async def fails() -> None:
        raise OSError

    async def stays() -> None:
        await asyncio.Event().wait()

    async with Runtime() as rt:
        handles = rt.submit_all([Task("a", fails), Task("b", stays)], fail_fast=True)
        assert [(await each).status for each in handles] == [State.FAILED, State.CANCELLED]


@story
async def test_who_runs_is_told_with_its_claims_until_it_is_gone() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def agent() -> None:
        entered.set()
        while not leave.is_set():
            try:
                await leave.wait()
            except asyncio.CancelledError:
                continue  # one that will not stop

    async with Runtime() as rt:
        handle = rt.submit(agent, id="a", writes="src/a.py")
        await entered.wait()
        [running] = rt.running()
        assert (running.task_id, running.stopping) == ("a", False)
        assert [str(claim) for claim in running.claims] == ["write src/a.py"]
        handle.cancel()
        await handle
        assert [each.stopping for each in rt.running()] == [True]
        leave.set()
        await rt.submit(asyncio.sleep, 0, writes="src/a.py")
        assert rt.running() == ()

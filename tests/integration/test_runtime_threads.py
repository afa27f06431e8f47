"""The loop, other threads, and notebooks."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import interlock
from interlock import (
    DuplicateId,
    FatalError,
    Handle,
    NotRunning,
    Outcome,
    Runtime,
    State,
    Task,
    TaskContext,
    WouldBlockTheLoop,
)

THREADS = 16


async def in_threads(work: Any) -> list[Any]:
    """What `work(i)` returns in each of 16 threads that begin together."""
    together = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        together.wait(60)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(begin, number) for number in range(THREADS)]
        return [await asyncio.wrap_future(each) for each in futures]


async def test_sixteen_threads_submit_at_once() -> None:
    counts: dict[str, int] = {}

    def count(name: str) -> str:
        counts[name] = counts.get(name, 0) + 1  # nobody else holds it: a lost update would show
        return name

    async with Runtime(max_parallel=8) as rt:

        def submit(number: int) -> list[Handle[str]]:
            return [rt.submit(count, f"c{i}", writes=f"c{i}.txt") for i in range(10)]

        ids = {each.task_id for handles in await in_threads(submit) for each in handles}
        assert len(ids) == THREADS * 10
    assert counts == {f"c{i}": THREADS for i in range(10)}
    assert rt.progress().succeeded == THREADS * 10


async def test_sixteen_threads_submit_and_wait() -> None:
    async with Runtime(max_parallel=2) as rt:

        def work(number: int) -> Outcome[int]:
            first = rt.submit(lambda: number)
            second = rt.submit(lambda value: value * 2, first)
            return second.wait()

        outcomes = await in_threads(work)
    assert [each.result for each in outcomes] == [2 * i for i in range(THREADS)]


async def test_of_sixteen_threads_that_submit_the_same_id_one_succeeds() -> None:
    async with Runtime() as rt:

        def submit(number: int) -> bool:
            try:
                rt.submit(lambda: number, id="same")
            except DuplicateId:
                return False
            return True

        assert (await in_threads(submit)).count(True) == 1


async def test_sixteen_threads_look_and_steer_while_tasks_run() -> None:
    async with Runtime(max_parallel=4) as rt:

        def work(number: int) -> State:
            handle = rt.submit(asyncio.Event().wait, id=f"t{number}")
            assert rt.progress().total >= 1
            assert rt.why(handle).task_id == f"t{number}"
            rt.prioritize(handle, number)
            assert handle.cancel()
            assert not handle.cancel()
            return handle.wait().status

        assert await in_threads(work) == [State.CANCELLED] * THREADS


async def test_a_blocking_wait_on_the_loops_own_thread_is_an_error() -> None:
    async with Runtime() as rt:
        handle = rt.submit(lambda: 1)
        waits = [handle.wait, handle.result().wait, rt.run([]).wait, rt.map(print, []).wait]
        for wait in waits:
            with pytest.raises(WouldBlockTheLoop, match="await"):
                wait()


async def test_a_thread_of_an_agent_is_named_after_its_task_and_daemonic() -> None:
    def names() -> tuple[str, bool]:
        thread = threading.current_thread()
        return thread.name, thread.daemon

    async def name() -> str:
        task = asyncio.current_task()
        assert task is not None
        return task.get_name()

    async with Runtime() as rt:
        assert (await rt.submit(names, id="api")).result == ("task-api", True)
        assert (await rt.submit(name, id="web")).result == "task-web"


VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


@pytest.mark.parametrize("blocking", [True, False])
async def test_an_agent_sees_the_context_variables_of_its_submitter(blocking: bool) -> None:
    def get() -> str:
        seen = VARIABLE.get()
        VARIABLE.set("changed by the agent")
        return seen

    async def get_later() -> str:
        return get()

    agent: Any = get if blocking else get_later
    async with Runtime() as rt:
        VARIABLE.set("at submission")
        handle = rt.submit(agent)
        VARIABLE.set("later")
        assert (await handle).result == "at submission"
        assert (await rt.submit(agent)).result == "later"
    assert VARIABLE.get() == "later"


# -- notebooks --------------------------------------------------------------------------------


def double(number: int) -> int:
    return 2 * number


async def double_later(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


TASKS = [Task("one", double, args=(1,)), Task("two", double_later, args=(2,), after="one")]


def test_run_without_a_loop() -> None:
    result = interlock.run(TASKS, max_parallel=4)
    assert [each.result for each in result] == [2, 4]


async def test_run_inside_a_running_loop_as_in_a_notebook() -> None:
    result = interlock.run(TASKS, max_parallel=4)
    assert [each.result for each in result] == [2, 4]
    # and the loop of the notebook is as it was
    await asyncio.sleep(0)
    assert [each.result for each in interlock.run(TASKS)] == [2, 4]


async def test_errors_of_use_come_out_of_run_inside_a_running_loop() -> None:
    with pytest.raises(interlock.UnknownDependency):
        interlock.run([Task("a", double, args=(1,), after="nobody")])
    with pytest.raises(interlock.InvalidOption):
        interlock.run(TASKS, max_parallel=0)


def test_run_takes_the_options_of_a_runtime_and_of_its_run() -> None:
    def fails() -> None:
        raise ValueError("no")

    result = interlock.run(
        [Task("bad", fails, uses="gpu"), Task("slow", asyncio.Event().wait, uses="gpu")],
        2,
        fail_fast=True,
        deadline="1h",
        capacity={"gpu": 2},
        grace=5,
    )
    assert result["bad"].status is State.FAILED
    assert result["slow"].status is State.CANCELLED


def test_run_inside_a_thread_of_a_task() -> None:
    """An agent may start a run of its own; it is none of the outer run's business."""

    def outer() -> list[int | None]:
        return [each.result for each in interlock.run(TASKS)]

    assert interlock.run([Task("outer", outer)])["outer"].result == [2, 4]


# -- fatal errors -----------------------------------------------------------------------------


def recurses() -> None:
    recurses()


def runs_out_of_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("agent", "error"), [(recurses, RecursionError), (runs_out_of_memory, MemoryError)]
)
def test_siblings_finish_before_a_fatal_error_is_raised(
    agent: Any, error: type[BaseException]
) -> None:
    failed = threading.Event()

    def sibling() -> str:
        assert failed.wait(60)
        return "finished"

    async def main() -> None:
        async with Runtime(max_parallel=2) as rt:
            rt.submit(sibling, id="sibling")
            assert (await rt.submit(agent, id="fatal")).status is State.FAILED
            failed.set()
            rt.submit(lambda: "too", id="later")

    with pytest.raises(FatalError, match="'fatal' ended with") as caught:
        asyncio.run(main())
    assert isinstance(caught.value.__cause__, error)
    by_id = {each.task_id: each for each in caught.value.outcomes}
    assert by_id["sibling"].result == "finished"
    assert by_id["later"].result == "too"
    assert by_id["fatal"].status is State.FAILED


def test_run_raises_a_fatal_error_with_all_outcomes() -> None:
    tasks = [Task("fatal", runs_out_of_memory), Task("fine", double, args=(2,))]
    with pytest.raises(FatalError) as caught:
        interlock.run(tasks)
    assert [each.status for each in caught.value.outcomes] == [State.FAILED, State.SUCCEEDED]


def test_a_fatal_error_is_not_tried_again() -> None:
    attempts = []

    def fatal(ctx: TaskContext) -> None:
        attempts.append(ctx.attempt)
        raise MemoryError

    with pytest.raises(FatalError):
        interlock.run([Task("fatal", fatal, retry=interlock.Retry(attempts=3, backoff=0))])
    assert attempts == [1]


# -- callers that come too late ---------------------------------------------------------------


def test_a_thread_that_comes_after_the_loop_was_closed_is_told() -> None:
    runtimes = []

    async def main() -> Handle[int]:
        async with Runtime() as rt:
            runtimes.append(rt)
            return rt.submit(double, 1)

    handle = asyncio.run(main())
    assert handle.wait().result == 2  # what is there can be had
    told: list[BaseException] = []

    def late() -> None:
        for call in (lambda: runtimes[0].submit(double, 1), runtimes[0].progress):
            try:
                call()
            except NotRunning as error:
                told.append(error)

    thread = threading.Thread(target=late)
    thread.start()
    thread.join(30)
    assert len(told) == 2

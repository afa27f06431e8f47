"""A Runtime on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock import Handle, InvalidOption, NotRunning, State, Task, TaskContext
from interlock.runtime.background import Background


def test_it_runs_tasks_for_code_that_is_not_async() -> None:
    with Background(max_parallel=2) as background:
        handle = background.runtime.submit(lambda: threading.current_thread().name)
        assert handle.result().wait() == "task-task"
        outcomes = background.runtime.map(abs, [-1, -2]).wait()
        assert [each.result for each in outcomes] == [1, 2]


def test_closing_waits_for_what_was_submitted() -> None:
    background = Background()
    held = threading.Event()
    handle = background.runtime.submit(held.wait)
    threading.Timer(0.01, held.set).start()
    background.close()
    assert handle.outcome is not None
    assert handle.outcome.status is State.SUCCEEDED


def test_closing_can_cancel() -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep("1h")

    background = Background()
    handle = background.runtime.submit(agent)
    background.close(cancel=True)
    assert handle.outcome is not None
    assert handle.outcome.status is State.CANCELLED
    background.close()
    with pytest.raises(NotRunning):
        background.runtime.submit(agent)


def test_closing_need_not_wait() -> None:
    background = Background()
    held = threading.Event()
    handle = background.runtime.submit(held.wait)
    background.close(wait=False)
    assert not background.is_over
    held.set()
    background.close()
    assert background.is_over
    assert handle.outcome is not None
    assert handle.outcome.status is State.SUCCEEDED


def test_leaving_its_block_by_an_error_cancels() -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep("1h")

    def work() -> None:
        with Background() as background:
            handles.append(background.runtime.submit(agent))
            raise LookupError

    handles: list[Handle[None]] = []
    with pytest.raises(LookupError):
        work()
    assert handles[0].state is State.CANCELLED


def test_impossible_options_are_errors_where_they_are_given() -> None:
    with pytest.raises(InvalidOption):
        Background(max_parallel=0)


def test_several_threads_share_one() -> None:
    with Background(max_parallel=4) as background:
        results: list[object] = []

        def work(number: int) -> None:
            result = background.runtime.run([Task(f"t{number}", abs, args=(number,))]).wait()
            results.append(result[f"t{number}"].result)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(results) == set(range(8))


def test_a_coroutine_can_be_started_there_and_cancelled() -> None:
    async def answer() -> int:
        return threading.get_ident()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    ended = threading.Event()
    background = Background()
    assert background.start(answer()).result() != threading.get_ident()
    waiting = background.start(forever())
    assert background.start(answer()).result()  # it has begun by now
    assert waiting.cancel()
    assert ended.wait(60)
    background.close()
    with pytest.raises(NotRunning):
        background.start(answer())

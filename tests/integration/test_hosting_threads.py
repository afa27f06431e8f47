"""A Runtime on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from interlock import (
    Handle,
    InvalidOption,
    NotRunning,
    Runtime,
    State,
    Task,
    TaskContext,
    UsageError,
)
from interlock.runtime.hosting.host import RuntimeHost


def test_it_runs_tasks_for_code_that_is_not_async() -> None:
    with RuntimeHost(lambda: Runtime(max_parallel=2)) as runtime:
        handle = runtime.submit(lambda: threading.current_thread().name)
        assert handle.result().wait() == "task-task"
        outcomes = runtime.map(abs, [-1, -2]).wait()
        assert [each.result for each in outcomes] == [1, 2]


def test_closing_waits_for_what_was_submitted() -> None:
    host = RuntimeHost(Runtime)
    runtime = host.enter_from_thread()
    held = threading.Event()
    handle = runtime.submit(held.wait)
    threading.Timer(0.01, held.set).start()
    host.close_from_thread()
    assert handle.outcome is not None
    assert handle.outcome.status is State.SUCCEEDED


def test_closing_can_cancel() -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep("1h")

    host = RuntimeHost(Runtime)
    runtime = host.enter_from_thread()
    handle = runtime.submit(agent)
    host.close_from_thread(cancel=True)
    assert handle.outcome is not None
    assert handle.outcome.status is State.CANCELLED
    host.close_from_thread()
    with pytest.raises(NotRunning):
        runtime.submit(agent)


def test_closing_need_not_wait() -> None:
    host = RuntimeHost(Runtime)
    runtime = host.enter_from_thread()
    held = threading.Event()
    handle = runtime.submit(held.wait)
    host.close_from_thread(wait=False)
    assert not host.is_closed
    held.set()
    host.close_from_thread()
    assert host.is_closed
    assert handle.outcome is not None
    assert handle.outcome.status is State.SUCCEEDED


def test_leaving_its_block_by_an_error_cancels() -> None:
    async def agent(ctx: TaskContext) -> None:
        await ctx.sleep("1h")

    def work() -> None:
        with RuntimeHost(Runtime) as runtime:
            handles.append(runtime.submit(agent))
            raise LookupError

    handles: list[Handle[None]] = []
    with pytest.raises(LookupError):
        work()
    assert handles[0].state is State.CANCELLED


def test_impossible_options_are_errors_where_they_are_given() -> None:
    with pytest.raises(InvalidOption):
        RuntimeHost(lambda: Runtime(max_parallel=0)).enter_from_thread()


def test_several_threads_share_one() -> None:
    with RuntimeHost(lambda: Runtime(max_parallel=4)) as runtime:
        results: list[object] = []

        def work(number: int) -> None:
            result = runtime.run([Task(f"t{number}", abs, args=(number,))]).wait()
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
    host = RuntimeHost(Runtime)
    host.enter_from_thread()
    assert host.start(answer()).result() != threading.get_ident()
    waiting = host.start(forever())
    assert host.start(answer()).result()  # it has begun by now
    assert waiting.cancel()
    assert ended.wait(60)
    host.close_from_thread()
    with pytest.raises(NotRunning):
        host.start(answer())


def test_threads_at_the_same_time_share_one_and_the_last_to_leave_closes_it() -> None:
    host = RuntimeHost(Runtime)
    with host.shared_from_thread() as first:
        with host.shared_from_thread() as second:
            assert second is first
        assert first.submit(abs, -1).result().wait() == 1
    assert host.is_closed
    with host.shared_from_thread() as third:
        assert third is not first


def test_the_last_thread_to_leave_does_not_wait_for_a_zombie_but_the_next_caller_does() -> None:
    held = threading.Event()
    host = RuntimeHost(lambda: Runtime(grace=30))
    with host.shared_from_thread() as first:
        outcome = first.submit(held.wait, timeout=0.01).wait()
        assert outcome.status is State.TIMED_OUT
    assert not host.is_closed
    threading.Timer(0.05, held.set).start()
    with host.shared_from_thread() as second:
        assert held.is_set()
        assert second is not first


def test_an_event_loop_is_refused_while_threads_are_inside_and_threads_while_a_loop_is() -> None:
    async def on_a_loop() -> None:
        async with host.shared():
            with pytest.raises(UsageError, match="on an event loop"):
                host.enter_from_thread()

    host = RuntimeHost(Runtime)
    with host.shared_from_thread(), pytest.raises(UsageError, match="in progress in a thread"):
        asyncio.run(on_a_loop())
    asyncio.run(on_a_loop())
    with host.shared_from_thread():
        pass


def test_an_event_loop_waits_for_the_run_that_threads_are_closing() -> None:
    async def on_a_loop() -> None:
        async with host.shared() as second:
            assert held.is_set()
            assert second is not first

    held = threading.Event()
    host = RuntimeHost(Runtime)
    with host.shared_from_thread() as first:
        first.submit(held.wait, timeout=0.01).wait()
    threading.Timer(0.05, held.set).start()
    asyncio.run(on_a_loop())


def test_a_thread_that_leaves_a_run_that_is_over_does_not_end_the_next_one() -> None:
    host = RuntimeHost(Runtime)
    first = host.enter_from_thread()
    host.leave_from_thread(first)
    second = host.enter_from_thread()
    host.leave_from_thread(first)
    assert host.runtime is second
    assert second.submit(abs, -1).result().wait() == 1
    host.leave_from_thread(second)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held() -> None:
    host = RuntimeHost(lambda: Runtime(2))
    locked, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with host._runs._lock:
            locked.set()
            forked.wait()

    async def keep() -> None:
        await host.keep()
        await host.shutdown(1.0)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            asyncio.run(keep())
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    forked.set()
    holder.join()
    assert status == 0

"""The two sides of a coordinator: threads and event loops, forks, and callers that vanish."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    AttemptsStillAlive,
    NotRunning,
    ParallelAgentCoordinator,
    TaskContext,
    UsageError,
)
from tests.unit.patterns.coordination import Notebook, part, statuses, title_in


class Gate:
    """An agent that stays inside until it is let go, whatever it is told."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __call__(self, ctx: TaskContext) -> str:
        if title_in(str(ctx.prompt)) == "s1":
            self.entered.set()
            assert self.go_on.wait(60)
        return "done"


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.go_on.set()


def made(gate: Gate, **options: Any) -> ParallelAgentCoordinator:
    config = {"max_retries": 0} | options.pop("config", {})
    return ParallelAgentCoordinator(None, lambda: gate, config, **options)


async def test_a_loop_is_refused_while_threads_are_inside_and_welcome_after(gate: Gate) -> None:
    coord = made(gate)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(coord.execute_parallel, [part(1, files="a.py")], "T")
        gate.entered.wait(60)
        with pytest.raises(UsageError, match=r"execute_parallel.*in progress"):
            await coord.execute([part(2, files="a.py")], "T")
        with pytest.raises(UsageError, match=r"execute_parallel.*in progress"):
            async with coord:
                raise AssertionError
        gate.go_on.set()
        assert statuses(call.result()) == {1: "completed"}
    assert statuses(await coord.execute([part(2, files="a.py")], "T")) == {2: "completed"}


async def test_threads_and_other_loops_are_refused_while_a_loop_is_inside(gate: Gate) -> None:
    coord = made(gate)
    call = asyncio.create_task(coord.execute([part(1, files="a.py")], "T"))
    await asyncio.to_thread(gate.entered.wait, 60)
    with pytest.raises(UsageError, match=r"on an event loop"):
        await asyncio.to_thread(coord.execute_parallel, [part(2, files="a.py")], "T")
    with pytest.raises(UsageError, match=r"on an event loop"):
        coord.execute_parallel([part(2)], "T")
    with pytest.raises(UsageError, match=r"another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(coord.execute([part(2)], "T")))
    gate.go_on.set()
    assert statuses(await call) == {1: "completed"}
    later = await asyncio.to_thread(coord.execute_parallel, [part(2, files="a.py")], "T")
    assert statuses(later) == {2: "completed"}


def test_a_loop_that_was_closed_on_its_callers_does_not_keep_threads_out(gate: Gate) -> None:
    coord = made(gate)
    loop = asyncio.new_event_loop()
    call = loop.create_task(coord.__aenter__())
    loop.run_until_complete(call)
    with pytest.raises(UsageError):
        coord.execute_parallel([part(2)], "T")
    for task in asyncio.all_tasks(loop):
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
    loop.close()
    assert statuses(coord.execute_parallel([part(2)], "T")) == {2: "completed"}


def test_what_threads_have_left_behind_is_held_against_a_loop_too(
    gate: Gate, tmp_path: Path
) -> None:
    short = {"agent_timeout_seconds": 0.2, "deadline_seconds": 0.5}
    coord = made(gate, config=short, workspace=tmp_path, grace=0.1)
    assert statuses(coord.execute_parallel([part(1, files="a.py")], "T")) == {1: "timeout"}
    (two,) = asyncio.run(coord.execute([part(2, files="a.py")], "T"))
    assert (two["status"], two["attempts"]) == ("timeout", 0)


def test_shutdown_names_a_thread_that_will_not_stop_also_when_its_caller_was_answered(
    gate: Gate,
) -> None:
    coord = made(gate, grace=0.05)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(coord.execute_parallel, [part(1)], "T")
        gate.entered.wait(60)
        with pytest.raises(AttemptsStillAlive, match="T/1"):
            coord.shutdown(0.05)
        assert statuses(call.result()) == {1: "cancelled"}


# -- callers that vanish ----------------------------------------------------------------------


def test_a_half_read_stream_that_the_loops_own_thread_collects_cancels_the_rest() -> None:
    dropped = threading.Event()
    notebook = Notebook()

    async def agent(ctx: TaskContext) -> str:
        if title_in(str(ctx.prompt)) == "s2":
            await asyncio.to_thread(dropped.wait, 60)
            gc.collect()
        return "done"

    coord = ParallelAgentCoordinator(notebook, lambda: agent)

    def half_read() -> None:
        stream = coord.stream([part(1, 1), part(2, 1), part(3, 2)], "T")
        assert next(stream)["subtask_id"] == 1
        circle: list[Any] = [stream]
        circle.append(circle)

    answers: list[Any] = []
    gc.disable()
    try:
        half_read()
        dropped.set()
        # A thread of its own: if the loop hangs, nothing here must wait for it.
        call = threading.Thread(
            target=lambda: answers.append(coord.execute_parallel([part(4)], "T")), daemon=True
        )
        call.start()
        call.join(60)
    finally:
        gc.enable()
    (results,) = answers
    assert statuses(results) == {4: "completed"}
    assert "completed" not in notebook.states[3]


def _in_a_fork(does: Callable[[], Any]) -> str:
    """What becomes of it in a child process; nothing, if it hangs."""
    heard, said = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # to fork with threads around is what this is about
        child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            text = repr(does())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            text = repr(error)
        os.write(said, text.encode())
        os._exit(0)
    os.close(said)
    with os.fdopen(heard) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def test_a_coordinator_that_was_open_at_a_fork_does_not_run_in_the_child() -> None:
    def agent() -> str:
        return "done"

    coord = ParallelAgentCoordinator(None, lambda: agent)

    def leave_it() -> str:
        coord.cancel()
        coord.set_max_parallel(3)
        coord.__exit__(None, None, None)
        return "left"

    def call() -> Any:
        return statuses(coord.execute_parallel([part(1)], "T"))

    assert _in_a_fork(call) == "{1: 'completed'}"  # nothing was open
    with coord:
        coord.execute_parallel([part(1)], "T")
        assert NotRunning.__name__ in _in_a_fork(call)
        assert NotRunning.__name__ in _in_a_fork(lambda: asyncio.run(coord.execute([part(1)], "T")))
        assert NotRunning.__name__ in _in_a_fork(coord.runtime.progress)
        assert _in_a_fork(leave_it) == "'left'"
        assert call() == {1: "completed"}

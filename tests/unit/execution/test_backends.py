"""The contract of `Backend`: the same sentences for coroutines, threads and processes."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from interlock.model.outcome import State
from tests.unit.execution import agents
from tests.unit.execution.worlds import KINDS, World, opened, story

every_backend = pytest.mark.parametrize("kind", KINDS)


@every_backend
@story
async def test_a_value_comes_back(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        ending = await world.run(agents.double, 21)
        assert (ending.status, ending.value, ending.error) == (State.SUCCEEDED, 42, None)


@every_backend
@story
async def test_an_exception_comes_back_with_its_story(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        ending = await world.run(agents.fail, "no such thing")
        assert ending.status is State.FAILED
        assert ending.error is not None
        assert (ending.error.type, ending.error.message) == ("ValueError", "no such thing")
        assert "in fail" in ending.error.traceback
        assert ending.error.retryable
        assert isinstance(ending.exception, ValueError)


@every_backend
@story
async def test_an_agent_says_whether_and_when_to_try_again(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        ending = await world.run(agents.fail_for_good)
        assert ending.error is not None
        assert not ending.error.retryable
        assert ending.retry_after == 7.0
        assert ending.rate == "openai"


@every_backend
@story
async def test_sys_exit_is_the_failure_of_that_attempt(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        ending = await world.run(agents.leave, 3)
        assert ending.error is not None
        assert ending.error.message == "the agent called sys.exit(3)"
        assert (await world.run(agents.double, 1)).value == 2


@every_backend
@story
async def test_a_base_exception_group_comes_back_whole(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        ending = await world.run(agents.raise_group)
        assert isinstance(ending.exception, BaseExceptionGroup)
        kinds = [type(each) for each in ending.exception.exceptions]
        assert kinds == [ValueError, KeyboardInterrupt]


@every_backend
@pytest.mark.parametrize(
    "exception", [asyncio.CancelledError(), GeneratorExit(), KeyboardInterrupt(), StopIteration()]
)
@story
async def test_whatever_an_agent_raises_harms_nobody_else(
    kind: str, exception: BaseException, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as world:
        sibling = await world.submit_waiting()
        ending = await world.run(agents.raise_this, exception)
        assert ending.status is State.FAILED
        assert not world.sink.is_over(sibling)
        await world.release(sibling)
        await world.sink.end_of(sibling)


@every_backend
@story
async def test_a_returned_failure_is_a_failure(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        exception = await world.run(agents.return_this, ValueError("returned"))
        assert exception.error is not None
        assert exception.error.message == "returned"
        outcome = await world.run(agents.return_failed_outcome)
        assert outcome.status is State.FAILED
        assert outcome.error is not None
        assert outcome.error.type == "Bad"


@every_backend
@story
async def test_a_returned_coroutine_is_awaited_or_refused(kind: str, tmp_path: Path) -> None:
    """Only a process has nothing else to do; a warning that nobody awaits it fails this test."""
    async with opened(kind, tmp_path) as world:
        ending = await world.run(agents.hand_on_a_coroutine)
        if kind != "processes":
            assert ending.error is not None
            assert "submit the async function itself" in ending.error.message
        else:
            assert ending.value == 7


@every_backend
@story
async def test_an_agent_sees_context_variables_unless_it_is_elsewhere(
    kind: str, tmp_path: Path
) -> None:
    context = copy_context()
    context.run(agents.COLOUR.set, "blue")
    async with opened(kind, tmp_path) as world:
        ending = await world.sink.end_of(world.submit(agents.colour, context=context))
        assert ending.value == ("none" if kind == "processes" else "blue")


@every_backend
@story
async def test_an_attempt_carries_its_name(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        for token in (1, 2):
            assert (await world.run(agents.own_name)).value == f"task-{token}"


@every_backend
@story
async def test_a_cancelled_attempt_ends_once(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        token = await world.submit_waiting()
        world.backend.cancel(token, 60)
        if not world.backend.caps.kill and kind == "threads":
            assert not world.sink.is_over(token)
            await world.release(token)
        ending = await world.sink.end_of(token)
        if kind != "threads":
            assert isinstance(ending.exception, asyncio.CancelledError)


@every_backend
@story
async def test_to_cancel_again_and_again_changes_nothing(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        token = await world.submit_waiting()
        for _ in range(50):
            world.backend.cancel(token, 60)
        if kind == "threads":
            await world.release(token)
        await world.sink.end_of(token)
        world.backend.cancel(token, 0)
        world.backend.cancel(4711, 0)


@every_backend
@story
async def test_an_attempt_cancelled_before_it_starts_ends_once(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tokens = [world.submit(agents.double, 1) for _ in range(10)]
        for token in tokens:
            world.backend.cancel(token, 60)
        for token in tokens:
            ending = await world.sink.end_of(token)
            if kind == "coroutines":
                assert isinstance(ending.exception, asyncio.CancelledError)


@every_backend
@story
async def test_close_leaves_alone_what_runs(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        token = await world.submit_waiting()
        await world.backend.close()
        assert not world.sink.is_over(token)
        await world.release(token)
        await world.sink.end_of(token)
        # Nobody may run the loop again: what ends after a close may be told both ways.
        assert set(world.orphans) <= {token}
        world.orphans.clear()


@every_backend
@story
async def test_close_may_be_repeated(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        await world.backend.close()
        await world.backend.close()


@every_backend
@story
async def test_hundreds_of_jobs_at_once_all_end(kind: str, tmp_path: Path) -> None:
    many = 100 if kind == "processes" else 500
    async with opened(kind, tmp_path) as world:
        tokens = [world.submit(agents.double, number) for number in range(many)]
        values = [(await world.sink.end_of(token)).value for token in tokens]
        assert values == [2 * number for number in range(many)]


class WatchedLoop(asyncio.SelectorEventLoop):
    """Tells when another thread has asked it to call something."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: SimpleQueue[object] = SimpleQueue()

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        handle = super().call_soon_threadsafe(callback, *args, context=context)
        self.asked.put(callback)
        return handle


def start_waiting(kind: str, folder: Path) -> tuple[WatchedLoop, World]:
    """A waiting attempt, on a loop that has stopped meanwhile."""
    loop = WatchedLoop()

    async def start() -> World:
        world = World(kind, folder)
        await world.submit_waiting()
        await loop.shutdown_default_executor()
        return world

    world = loop.run_until_complete(start())
    while not loop.asked.empty():
        loop.asked.get()
    return loop, world


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_attempt_that_outlives_its_loop_is_an_orphan(kind: str, tmp_path: Path) -> None:
    loop, world = start_waiting(kind, tmp_path)
    loop.close()
    assert not world.orphans
    Path(world.released).write_text("released")
    world.orphaned.wait()
    assert world.orphans == [1]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_report_that_a_closing_loop_forgets_is_not_lost(kind: str, tmp_path: Path) -> None:
    loop, world = start_waiting(kind, tmp_path)
    Path(world.released).write_text("released")
    for _ in range(2 if kind == "processes" else 1):  # a process ends, and is gone later
        loop.asked.get()
    assert not world.orphans
    loop.close()
    world.orphaned.wait()
    assert world.orphans == [1]
    assert not world.sink.endings

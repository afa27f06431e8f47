"""The scheduler with real threads, processes and anyio."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest

from interlock import Claim, Kind, NotAnAgent, State, TaskFailed, TaskScheduler, write
from interlock.patterns.scheduler.scheduler import OnError
from tests.integration.step_agents import Fails, Hangs, Notes, Says, Waits, Where


@pytest.fixture
def waiting() -> Iterator[Waits]:
    """An agent that ignores whatever it is told, until the end of the test."""
    agent = Waits("stuck")
    yield agent
    agent.let_go.set()


def test_it_runs_under_anyio() -> None:
    agents = [Says("a"), Says("b", 2), Says("c", [3])]
    results = anyio.run(TaskScheduler(max_concurrent=3, timeout_s=120).run, agents)
    assert results == ["a", 2, [3]]


def test_a_failure_surfaces_through_anyio() -> None:
    with pytest.raises(LookupError, match="bad"):
        anyio.run(TaskScheduler().run, [Says("a"), Fails("bad")])


NOT_FOR_THE_CALLER = [SystemExit, KeyboardInterrupt, asyncio.CancelledError, StopIteration]


@pytest.mark.parametrize("on_error", ["fail_fast", "isolate"])
@pytest.mark.parametrize("kind", NOT_FOR_THE_CALLER)
def test_what_would_mean_something_else_to_the_caller_is_a_task_that_failed(
    kind: type[BaseException], on_error: OnError
) -> None:
    class Raises(Says):
        def run_step(self) -> None:
            raise kind("mine")

    async def main() -> BaseException:
        running = TaskScheduler(on_error=on_error).run([Says("a"), Raises("odd")])
        if on_error == "isolate":
            said, failed = await running
            assert said == "a"
            assert isinstance(failed, TaskFailed)
            return failed
        with pytest.raises(TaskFailed) as caught:
            await running
        return caught.value

    cause = asyncio.run(main()).__cause__
    assert type(cause) is kind
    assert cause.__notes__ == ["raised by agent 'odd'"]


def test_a_cancel_scope_of_anyio_cancels_the_agents() -> None:
    agent = Waits("polling", polls=True)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(TaskScheduler().run, [agent, Says("quick")])
            assert await asyncio.to_thread(agent.begun.wait, 60)
            group.cancel_scope.cancel()
        assert await asyncio.to_thread(agent.ended.wait, 60)

    anyio.run(main)


def test_a_timeout_of_anyio_ends_the_call_though_a_thread_goes_on(waiting: Waits) -> None:
    async def main() -> None:
        with anyio.move_on_after(0.05) as scope:
            await TaskScheduler().run([waiting])
        assert scope.cancelled_caught

    anyio.run(main)
    assert not waiting.ended.is_set()


SESSION: ContextVar[str] = ContextVar("session")


def test_steps_run_in_worker_threads_with_the_callers_context_variables() -> None:
    class Looks(Says):
        def run_step(self) -> tuple[str, bool]:
            return SESSION.get(), threading.current_thread() is threading.main_thread()

    async def main() -> None:
        SESSION.set("mine")
        assert await TaskScheduler().run([Looks("a")]) == [("mine", False)]

    asyncio.run(main())


@pytest.mark.parametrize("entered", [False, True])
def test_the_caller_is_answered_on_time_and_the_thread_is_fenced_off(
    waiting: Waits, entered: bool
) -> None:
    async def main() -> None:
        scheduler = TaskScheduler(1, timeout_s=0.05, on_error="isolate")
        if entered:
            await scheduler.__aenter__()
        results = await scheduler.run([waiting, Says("b")])
        assert isinstance(results[0], TimeoutError)
        assert results[1] == "b"
        assert not waiting.ended.is_set()
        if entered:
            await scheduler.__aexit__(None, None, None)

    asyncio.run(main())
    assert not waiting.ended.is_set()  # nor did anything wait for it at the end of the loop


def test_a_thread_is_told_that_its_time_is_up() -> None:
    agent = Waits("polling", polls=True)
    with pytest.raises(TimeoutError):
        asyncio.run(TaskScheduler(timeout_s=0.05).run([agent]))
    assert agent.ended.wait(60)


def test_what_it_claims_stays_held_in_later_calls_until_it_ends(waiting: Waits) -> None:
    def claims(agent: Says) -> list[Claim]:
        return [write("book.txt")]

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await TaskScheduler(timeout_s=0.05, claims=claims).run([waiting])
        async with TaskScheduler(claims=claims) as patient:
            later = asyncio.create_task(patient.run([Says("next")]))
            async for event in patient.runtime.events():
                if event.kind is Kind.SUBMITTED:
                    break
            assert patient.runtime.handle("next").state is State.WAITING
            why = str(patient.runtime.why("next"))
            assert "stuck of run" in why
            assert "was told to stop and has not exited" in why
            waiting.let_go.set()
            assert await later == ["next"]

    asyncio.run(main())


def test_in_processes_each_agent_has_one_of_its_own() -> None:
    scheduler = TaskScheduler(run_in_process=True)
    results = asyncio.run(scheduler.run([Where("a"), Where("b"), Says("c", {"d": 1})]))
    assert len({os.getpid(), results[0][0], results[1][0]}) == 3
    assert results[2] == {"d": 1}


def test_a_process_whose_time_is_up_is_killed() -> None:
    async def main() -> list[object]:
        scheduler = TaskScheduler(timeout_s=5, on_error="isolate", run_in_process=True)
        return await scheduler.run([Hangs("hangs"), Says("b")])

    results = asyncio.run(main())
    assert isinstance(results[0], TimeoutError)
    assert results[1] == "b"
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid.txt").read_text(encoding="ascii")), 0)


def test_a_failure_in_a_process_surfaces() -> None:
    with pytest.raises(LookupError, match="bad"):
        asyncio.run(TaskScheduler(run_in_process=True).run([Fails("bad")]))


def test_an_agent_that_cannot_be_sent_is_named_before_anything_starts() -> None:
    class Local(Says):
        pass

    agents = [Notes("a"), Local("home-made")]
    with pytest.raises(NotAnAgent, match="agent 'home-made'"):
        asyncio.run(TaskScheduler(run_in_process=True).run(agents))
    assert not Path("ran.txt").exists()


def test_with_a_journal_what_succeeded_is_not_run_again() -> None:
    async def main(*, fails: bool, resume: bool | None) -> list[object]:
        scheduler = TaskScheduler(1, on_error="isolate", journal="run.db", resume=resume)
        return await scheduler.run([Notes("a"), Notes("b", fails), Notes("c")])

    first = asyncio.run(main(fails=True, resume=None))
    assert isinstance(first[1], LookupError)
    assert asyncio.run(main(fails=False, resume=True)) == ["a", "b", "c"]
    assert Path("ran.txt").read_text(encoding="utf-8") == "abcb"

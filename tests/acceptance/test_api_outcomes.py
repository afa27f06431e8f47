"""Outcomes, failures, and data on its way in and out."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import interlock
from interlock import (
    AgentFailed,
    ErrorRecord,
    Outcome,
    Retry,
    RunFailed,
    Runtime,
    State,
    Task,
    TaskContext,
    TaskFailed,
)

pytestmark = pytest.mark.usefixtures("workspace")


def fails() -> int:
    raise ValueError("it is broken")


async def waits_for_ever() -> None:
    await asyncio.Event().wait()


def test_the_ends_are_those_of_the_specification() -> None:
    assert issubclass(State, enum.StrEnum)
    ends = {state.value for state in State if state.is_end}
    assert ends == {"succeeded", "failed", "timed_out", "cancelled", "skipped", "conflicted"}


async def test_a_success_has_a_result_and_no_error() -> None:
    before = datetime.now(UTC)
    async with Runtime() as rt:
        outcome = await rt.submit(lambda: 42, id="a")
    assert (outcome.task_id, outcome.status, outcome.result) == ("a", "succeeded", 42)
    assert (outcome.error, outcome.exception, outcome.attempts) == (None, None, 1)
    assert outcome.started_at is not None
    assert outcome.ended_at is not None
    assert before - timedelta(seconds=1) < outcome.started_at <= outcome.ended_at
    measured = (outcome.ended_at - outcome.started_at).total_seconds()
    assert measured == pytest.approx(outcome.duration, abs=0.001)
    assert outcome.changed_paths == ()
    assert outcome.succeeded
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcome.result = 43  # type: ignore[misc]


async def test_a_failure_has_an_error_and_no_result() -> None:
    async with Runtime() as rt:
        outcome = await rt.submit(fails)
    assert (outcome.status, outcome.result) == ("failed", None)
    assert isinstance(outcome.error, ErrorRecord)
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "it is broken")
    assert 'raise ValueError("it is broken")' in outcome.error.traceback
    assert outcome.error.retryable
    assert isinstance(outcome.exception, ValueError)


async def test_how_the_other_ends_look() -> None:
    async with Runtime() as rt:
        late = rt.submit(waits_for_ever, timeout=0.01)
        stopped = rt.submit(waits_for_ever)
        failed = rt.submit(fails, id="failed")
        skipped = rt.submit(waits_for_ever, after=[failed])
        stopped.cancel("not needed")
        assert [(await each).status for each in (late, stopped, skipped)] == [
            "timed_out",
            "cancelled",
            "skipped",
        ]
        outcome = await skipped
        assert (outcome.cause, outcome.attempts, outcome.started_at) == ("failed", 0, None)
        assert (await stopped).reason == "not needed"
        assert (await late).reason


async def test_awaiting_never_raises_and_result_does() -> None:
    async with Runtime() as rt:
        handle = rt.submit(fails, id="bad")
        assert (await handle).status is State.FAILED
        with pytest.raises(TaskFailed, match="task 'bad' failed: ValueError") as caught:
            await handle.result()
        assert isinstance(caught.value.__cause__, ValueError)
        assert caught.value.outcome is handle.outcome


async def test_a_run_tells_of_all_failures_at_once() -> None:
    async with Runtime() as rt:
        result = await rt.run([Task("bad", fails), Task("good", lambda: 1)])
        assert not result.all_succeeded
        assert [each.task_id for each in result.failures] == ["bad"]
        assert len(result) == 2
        with pytest.raises(RunFailed, match="1 of 2 tasks did not succeed") as caught:
            result.raise_for_failures()
        assert [each.task_id for each in caught.value.failures] == ["bad"]
        with pytest.raises(interlock.UnknownTask):
            result["nobody"]
        assert (await rt.run([])).all_succeeded


async def test_fail_fast_stops_the_others() -> None:
    async with Runtime() as rt:
        alone = rt.submit(lambda: "not of this group")
        result = await rt.run([Task("bad", fails), Task("slow", waits_for_ever)], fail_fast=True)
        assert result["slow"].status is State.CANCELLED
        assert (await alone).succeeded


async def test_a_run_has_a_deadline() -> None:
    async with Runtime() as rt:
        result = await rt.run([Task("slow", waits_for_ever)], deadline=0.05)
        assert result["slow"].status is State.TIMED_OUT


async def test_who_stops_waiting_for_a_run_cancels_it() -> None:
    async with Runtime() as rt:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await rt.run([Task("slow", waits_for_ever)])
        assert (await rt.handle("slow")).status is State.CANCELLED


async def test_returned_failures_are_failures() -> None:
    def hands_on(value: Any) -> Any:
        return value

    late: Outcome[None] = Outcome("x", State.TIMED_OUT)
    async with Runtime() as rt:
        error = await rt.submit(hands_on, ValueError("returned"))
        passed_on = await rt.submit(hands_on, late)
        good = await rt.submit(hands_on, Outcome("x", State.SUCCEEDED, "value"))
    assert (error.status, error.reason) == (State.FAILED, "ValueError: returned")
    assert passed_on.status is State.FAILED
    assert good.result == "value"


async def test_an_agent_says_whether_and_when_to_try_again() -> None:
    def refuses(ctx: TaskContext, retryable: bool) -> None:
        raise AgentFailed("over quota", retryable=retryable, retry_after=0.01)

    async with Runtime() as rt:
        retry = Retry(attempts=3, backoff=0)
        assert (await rt.submit(refuses, True, retry=retry)).attempts == 3
        outcome = await rt.submit(refuses, False, retry=retry)
        assert outcome.attempts == 1
        assert outcome.error is not None
        assert not outcome.error.retryable


# -- data -------------------------------------------------------------------------------------


async def test_a_handle_as_an_argument_is_a_dependency_and_arrives_as_its_result() -> None:
    def shows(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    async with Runtime() as rt:
        one, two = rt.submit(lambda: 1), rt.submit(lambda: [2])
        handle = rt.submit(
            shows, one, [two, (one, {"deep": two})], {one}, kwargs={"x": {"y": [one]}}
        )
        assert handle.task.after == (one.task_id, two.task_id)
        assert (await handle).result == ((1, [[2], (1, {"deep": [2]})], {1}), {"x": {"y": [1]}})


async def test_the_failure_of_an_argument_skips_the_task() -> None:
    async with Runtime() as rt:
        outcome = await rt.submit(abs, rt.submit(fails))
    assert (outcome.status, outcome.cause) == (State.SKIPPED, "fails")


async def test_a_handle_of_another_run_is_refused_even_if_the_ids_agree() -> None:
    async with Runtime() as other:
        foreign = other.submit(lambda: "theirs", id="same")
    async with Runtime() as rt:
        rt.submit(lambda: "ours", id="same")
        with pytest.raises(interlock.UnknownDependency, match="another run"):
            rt.submit(str, foreign)


async def test_data_is_copied_when_it_is_submitted() -> None:
    async with Runtime() as rt:
        rt.pause()
        mine: dict[str, Any] = {"list": [1, 2]}
        handle = rt.submit(lambda data: data, mine)
        mine["list"].append(3)
        rt.resume()
        assert (await handle).result == {"list": [1, 2]}


async def test_data_is_copied_when_it_is_delivered() -> None:
    kept: list[list[int]] = []

    def makes() -> list[int]:
        kept.append([1])
        return kept[0]

    def changes(numbers: list[int]) -> list[int]:
        numbers.append(2)
        return numbers

    def changes_results(ctx: TaskContext) -> None:
        result: Any = ctx.results["makes"].result
        result.append(3)

    async with Runtime() as rt:
        made = rt.submit(makes)
        first, second = rt.submit(changes, made), rt.submit(changes, made)
        third = rt.submit(changes_results, after=[made, first, second])
        assert (await third).succeeded
        assert (await first).result == (await second).result == [1, 2]
    kept[0].append(4)
    assert made.outcome is not None
    assert made.outcome.result == [1]


async def test_every_attempt_gets_the_arguments_as_they_were_submitted() -> None:
    def spoils(ctx: TaskContext, numbers: list[int]) -> list[int]:
        numbers.append(ctx.attempt)
        if ctx.attempt == 1:
            raise OSError("once more")
        return numbers

    async with Runtime() as rt:
        handle = rt.submit(spoils, [0], retry=Retry(attempts=2, backoff=0))
        assert (await handle).result == [0, 2]


async def test_arguments_that_contain_themselves_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    async with Runtime() as rt:
        with pytest.raises(interlock.InvalidOption, match="contain themselves"):
            rt.submit(str, endless)

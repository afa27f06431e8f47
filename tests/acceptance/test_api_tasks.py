"""`Task` and its options, as the specification of the library lists them."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pydantic
import pytest

import interlock
from interlock import BlankId, InvalidOption, Outcome, Retry, Runtime, State, Task, TaskContext

pytestmark = pytest.mark.usefixtures("workspace")


def agent(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


async def waits_for_ever() -> None:
    await asyncio.Event().wait()


async def run(task: Task) -> Outcome[Any]:
    async with Runtime() as rt:
        return await rt.submit(task)


async def test_every_option_has_a_default() -> None:
    task = Task("a", agent)
    assert {f.name: getattr(task, f.name) for f in dataclasses.fields(task)} == {
        "id": "a",
        "agent": agent,
        "prompt": None,
        "args": (),
        "kwargs": {},
        "claims": (),
        "after": (),
        "priority": 0,
        "timeout": None,
        "deadline": None,
        "retry": Retry(attempts=1),
        "estimate": None,
        "key": None,
        "workspace": None,
        "guard": None,
        "output": None,
        "labels": {},
    }
    assert (await run(task)).result == ((), {})


def test_a_task_is_frozen_and_replaced() -> None:
    task = Task("a", agent, priority=1, writes="src/")
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.priority = 2  # type: ignore[misc]
    changed = task.replace(id="b", priority=2)
    assert (changed.id, changed.priority, changed.claims) == ("b", 2, task.claims)
    assert (task.id, task.priority) == ("a", 1)
    with pytest.raises(BlankId):
        task.replace(id="")


def test_mappings_of_a_task_are_read_only() -> None:
    kwargs, labels = {"a": 1}, {"team": "red"}
    task = Task("a", agent, kwargs=kwargs, labels=labels)
    kwargs["a"], labels["team"] = 2, "blue"
    assert (task.kwargs["a"], task.labels["team"]) == (1, "red")
    for mapping in (task.kwargs, task.labels):
        with pytest.raises(TypeError):
            mapping["new"] = 1  # type: ignore[index]


async def test_arguments_prompt_and_labels_reach_the_agent() -> None:
    async def looks(ctx: TaskContext, one: int, *, two: int) -> tuple[Any, ...]:
        return one, two, ctx.prompt, ctx.task.labels["team"]

    task = Task("a", looks, prompt="Fix it.", args=(1,), kwargs={"two": 2}, labels={"team": "red"})
    assert (await run(task)).result == (1, 2, "Fix it.", "red")


@pytest.mark.parametrize("duration", [0.05, timedelta(milliseconds=50), "50ms"])
async def test_a_timeout_is_seconds_a_timedelta_or_text(duration: Any) -> None:
    outcome = await run(Task("a", waits_for_ever, timeout=duration))
    assert outcome.status is State.TIMED_OUT


async def test_a_timeout_is_for_each_attempt() -> None:
    retry = Retry(attempts=3, backoff=0)
    outcome = await run(Task("a", waits_for_ever, timeout=0.01, retry=retry))
    assert (outcome.status, outcome.attempts) == (State.TIMED_OUT, 3)


async def test_a_deadline_covers_all_attempts() -> None:
    retry = Retry(attempts=1_000_000, backoff=0)
    outcome = await run(Task("a", waits_for_ever, timeout=0.02, deadline=0.1, retry=retry))
    assert outcome.status is State.TIMED_OUT
    assert outcome.attempts < 1_000_000


async def test_a_deadline_may_be_a_datetime() -> None:
    in_time = datetime.now(UTC) + timedelta(hours=1)
    soon = datetime.now(UTC) + timedelta(milliseconds=50)
    past = datetime.now(UTC) - timedelta(hours=1)
    assert (await run(Task("a", agent, deadline=in_time))).succeeded
    assert (await run(Task("a", waits_for_ever, deadline=soon))).status is State.TIMED_OUT
    assert (await run(Task("a", waits_for_ever, deadline=past))).status is State.TIMED_OUT


def test_a_datetime_without_a_time_zone_is_refused() -> None:
    with pytest.raises(InvalidOption, match="no time zone"):
        Task("a", agent, deadline=datetime(2030, 1, 1))


async def test_a_deadline_counts_while_a_task_waits() -> None:
    async with Runtime(max_parallel=1) as rt:
        first = rt.submit(waits_for_ever)
        second = rt.submit(waits_for_ever, deadline=0.05)
        outcome = await second
        first.cancel()
    assert (outcome.status, outcome.attempts) == (State.TIMED_OUT, 0)


async def test_attempts_are_made_until_one_succeeds() -> None:
    async def third_time_lucky(ctx: TaskContext) -> int:
        if ctx.attempt < 3:
            raise OSError("not yet")
        return ctx.attempt

    retry = Retry(attempts=5, backoff=0.001, max_backoff=60)
    outcome = await run(Task("a", third_time_lucky, retry=retry))
    assert (outcome.result, outcome.attempts) == (3, 3)


async def test_priority_goes_first() -> None:
    order: list[str] = []

    async def tells(ctx: TaskContext) -> None:
        order.append(ctx.task.id)

    async with Runtime(max_parallel=1) as rt:
        rt.pause()
        for name, priority in (("low", -1), ("normal", 0), ("high", 5)):
            rt.submit(tells, id=name, priority=priority)
        rt.resume()
    assert order == ["high", "normal", "low"]


class Page(pydantic.BaseModel):
    title: str
    words: int


async def test_a_result_is_validated_against_a_model() -> None:
    def good() -> dict[str, Any]:
        return {"title": "Start", "words": 120}

    def bad() -> dict[str, Any]:
        return {"title": "Start"}

    assert (await run(Task("a", good, output=Page))).result == Page(title="Start", words=120)
    outcome = await run(Task("a", bad, output=Page))
    assert outcome.status is State.FAILED
    assert outcome.error is not None
    assert outcome.error.type == "InvalidOutput"
    assert outcome.error.message == "the result is not a valid Page: words: Field required"


async def test_a_result_is_validated_against_any_type() -> None:
    assert (await run(Task("a", lambda: ["x", "y"], output=list[str]))).result == ["x", "y"]
    outcome = await run(Task("a", lambda: ["x", 1], output=list[str]))
    assert outcome.reason.startswith("InvalidOutput: the result is not a valid list[str]: 1: ")
    assert (await run(Task("a", lambda: None, output=list[str]))).status is State.FAILED


async def test_an_invalid_result_is_tried_again() -> None:
    def second_time_lucky(ctx: TaskContext) -> list[Any]:
        return ["text"] if ctx.attempt == 2 else [None]

    task = Task("a", second_time_lucky, output=list[str], retry=Retry(attempts=2, backoff=0))
    assert (await run(task)).result == ["text"]


async def test_a_model_whose_validator_breaks_is_a_failure() -> None:
    class Broken(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def check(cls, number: int) -> int:
            raise LookupError("a bug in the model")

    outcome = await run(Task("a", lambda: {"number": 1}, output=Broken))
    assert outcome.reason.startswith("LookupError")


@pytest.mark.parametrize("output", ["no type", "str", 5, {}, [], object()])
async def test_what_is_no_type_is_refused_at_once(output: Any) -> None:
    async with Runtime() as rt:
        with pytest.raises(InvalidOption, match="which results cannot be validated against"):
            rt.submit(agent, output=output)


async def test_a_type_that_cannot_be_hashed_is_a_type() -> None:
    assert (await run(Task("a", lambda: "1", output=Annotated[int, ["x"]]))).result == 1


async def test_the_same_key_twice_is_one_task() -> None:
    calls = []

    def counts(number: int) -> int:
        calls.append(number)
        return number

    async with Runtime() as rt:
        first = rt.submit(counts, 1, key="daily report")
        second = rt.submit(counts, 2, key="daily report")
        assert second is first
        assert (await second).result == 1
        assert rt.submit(counts, 3, key="daily report").outcome is first.outcome
    assert calls == [1]


async def test_ids_are_made_up_readable_and_unique() -> None:
    class Editor:
        def run_step(self) -> None:
            """Nothing to edit."""

    async with Runtime() as rt:
        rt.submit(agent, id="agent-3")
        handles = [rt.submit(agent) for _ in range(3)]
        handles += [rt.submit(lambda: None), rt.submit(Editor())]
    assert [each.task_id for each in handles] == ["agent", "agent-2", "agent-4", "task", "Editor"]


async def test_map_makes_ids_and_fills_in_items() -> None:
    def page(name: str) -> str:
        return name.upper()

    async with Runtime() as rt:
        outcomes = await rt.map(
            page, ["intro", "end"], id="page-{index}", writes="{item}.md", prompt="Write {item}"
        )
        assert [each.task_id for each in outcomes] == ["page-0", "page-1"]
        assert [each.result for each in outcomes] == ["INTRO", "END"]
        assert rt.handle("page-1").task.prompt == "Write end"
        assert rt.handle("page-1").task.claims == (interlock.write("end.md"),)
        assert await rt.map(page, []) == []


@pytest.mark.parametrize("option", ["workspace", "guard"])
def test_options_of_later_parts_say_what_is_possible_today(option: str) -> None:
    Task("a", agent, workspace="shared", guard="none")
    with pytest.raises(InvalidOption, match="today it can be"):
        Task("a", agent, **{option: "worktree"})  # type: ignore[arg-type]

"""How agents are called, in each of their forms."""

from __future__ import annotations

import asyncio
import functools
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

import interlock
from interlock import NotAnAgent, Outcome, Runtime, Task, TaskContext

pytestmark = pytest.mark.usefixtures("workspace")


async def call(agent: Any, *args: Any, **options: Any) -> Outcome[Any]:
    async with Runtime() as rt:
        return await rt.submit(agent, *args, **options)


async def by_annotation(context: TaskContext, number: int) -> tuple[str, int]:
    return context.task.id, number


async def by_qualified_annotation(context: interlock.TaskContext, number: int) -> tuple[str, int]:
    return context.task.id, number


async def by_name(ctx, number):  # type: ignore[no-untyped-def]
    return ctx.task.id, number


def blocking(ctx: TaskContext, number: int) -> tuple[str, int]:
    return ctx.task.id, number


@pytest.mark.parametrize("agent", [by_annotation, by_qualified_annotation, by_name, blocking])
async def test_who_asks_for_its_context_gets_it(agent: Any) -> None:
    assert (await call(agent, 7, id="me")).result == ("me", 7)


async def test_who_does_not_ask_for_its_context_gets_its_arguments_alone() -> None:
    async def later(number: int, other: int = 0) -> int:
        return number + other

    assert (await call(later, 7)).result == 7
    assert (await call(later, 7, kwargs={"other": 1})).result == 8
    assert (await call(abs, -7)).result == 7
    assert (await call(functools.partial(later, 1), 2)).result == 3


async def test_async_agents_run_on_the_loop_and_blocking_ones_in_threads() -> None:
    def thread() -> int:
        return threading.get_ident()

    async def later() -> int:
        return threading.get_ident()

    here = threading.get_ident()
    assert (await call(later)).result == here
    assert (await call(thread)).result != here
    assert (await call(functools.partial(later))).result == here


class Runs:
    async def run(self, ctx: TaskContext) -> str:
        return f"async {ctx.task.id}"


class RunsInAThread:
    def run(self, anything: TaskContext) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return f"blocking {anything.task.id}"


class Steps:
    def run_step(self) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return f"step of {interlock.current().task.id}"


class Callable:
    async def __call__(self, ctx: TaskContext) -> str:
        return f"called {ctx.task.id}"


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (Runs(), "async me"),
        (RunsInAThread(), "blocking me"),
        (Steps(), "step of me"),
        (Callable(), "called me"),
        (Runs().run, "async me"),
    ],
)
async def test_objects_and_methods_are_agents(agent: Any, said: str) -> None:
    assert (await call(agent, id="me")).result == said


@dataclass(frozen=True)
class Equal:
    """Two of these are equal, and yet not the same."""

    log: list[str] = field(compare=False, hash=False)

    def run_step(self) -> None:
        self.log.append("called")


async def test_an_agent_is_called_itself_and_not_one_that_is_equal_to_it() -> None:
    first, second = Equal([]), Equal([])
    await call(first)
    await call(second)
    assert (first.log, second.log) == (["called"], ["called"])


async def test_code_further_down_finds_the_context() -> None:
    async def deep_down() -> str:
        return interlock.current().task.id

    async def agent() -> str:
        task = asyncio.create_task(deep_down())
        return await task

    assert (await call(agent, id="me")).result == "me"
    with pytest.raises(interlock.AttemptOver):
        interlock.current()
    assert not interlock.cancelled()


class IsNoAgent:
    pass


def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        (None, "is no agent"),
        ("codex", "is no agent"),
        (IsNoAgent(), "is no agent"),
        (Runs, "submit an instance"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
    ],
)
async def test_what_is_no_agent_is_refused_at_once(agent: Any, says: str) -> None:
    with pytest.raises(NotAnAgent, match=says):
        await call(agent, id="a")
    with pytest.raises(NotAnAgent, match="task 'a'"):
        interlock.run([Task("a", agent)])


@pytest.mark.parametrize("agent", [by_annotation, blocking])
async def test_arguments_that_do_not_fit_are_refused_at_once(agent: Any) -> None:
    with pytest.raises(NotAnAgent, match="missing a required argument: 'number'"):
        await call(agent)
    with pytest.raises(NotAnAgent, match="too many positional arguments"):
        await call(agent, 1, 2)
    with pytest.raises(NotAnAgent, match="unexpected keyword argument"):
        await call(agent, 1, kwargs={"other": 1})

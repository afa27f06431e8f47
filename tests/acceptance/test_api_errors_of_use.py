"""Errors of use: at once, before anything starts, each its own subclass of InterlockError."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import interlock
from interlock import (
    BlankId,
    ClaimOutsideWorkspace,
    DependencyCycle,
    DuplicateId,
    ImpossibleClaim,
    InvalidOption,
    InvalidPattern,
    NotAnAgent,
    ProtectedPath,
    Rate,
    Retry,
    Runtime,
    ShuttingDown,
    Task,
    UnknownDependency,
    UnknownResource,
    UnknownTask,
    UsageError,
    uses,
    write,
)

pytestmark = pytest.mark.usefixtures("workspace")


def agent() -> None:
    """Does nothing, and must not be called here."""


ERRORS: list[tuple[type[UsageError], Callable[[], list[Any]]]] = [
    (BlankId, lambda: [Task("", agent)]),
    (BlankId, lambda: [Task("  ", agent)]),
    (BlankId, lambda: [Task(None, agent)]),  # type: ignore[arg-type]
    (DuplicateId, lambda: [Task("a", agent), Task("a", agent)]),
    (UnknownDependency, lambda: [Task("a", agent, after="nobody")]),
    (DependencyCycle, lambda: [Task("a", agent, after="a")]),
    (DependencyCycle, lambda: [Task("a", agent, after="b"), Task("b", agent, after=["a"])]),
    (ClaimOutsideWorkspace, lambda: [Task("a", agent, writes="../x")]),
    (ClaimOutsideWorkspace, lambda: [Task("a", agent, reads="/etc/passwd")]),
    (InvalidPattern, lambda: [Task("a", agent, writes="src/[a")]),
    (InvalidPattern, lambda: [Task("a", agent, writes="")]),
    (ProtectedPath, lambda: [Task("a", agent, writes="protected/x")]),
    (UnknownResource, lambda: [Task("a", agent, uses=uses("gpus", 2))]),
    (ImpossibleClaim, lambda: [Task("a", agent, uses=uses("gpu", 2))]),
    (InvalidOption, lambda: [Task("a", agent, uses="gpu=many")]),
    (InvalidOption, lambda: [Task("a", agent, timeout=-1)]),
    (InvalidOption, lambda: [Task("a", agent, timeout="soon")]),
    (InvalidOption, lambda: [Task("a", agent, timeout=True)]),
    (InvalidOption, lambda: [Task("a", agent, deadline=float("nan"))]),
    (InvalidOption, lambda: [Task("a", agent, deadline=datetime(2030, 1, 1))]),
    (InvalidOption, lambda: [Task("a", agent, retry=3)]),  # type: ignore[arg-type]
    (InvalidOption, lambda: [Task("a", agent, retry=Retry(attempts=0))]),
    (InvalidOption, lambda: [Task("a", agent, priority=1.5)]),  # type: ignore[arg-type]
    (InvalidOption, lambda: [Task("a", agent, prompt=3)]),  # type: ignore[arg-type]
    (InvalidOption, lambda: [Task("a", agent, args="ab")]),
    (InvalidOption, lambda: [Task("a", agent, kwargs={1: 2})]),  # type: ignore[dict-item]
    (InvalidOption, lambda: [Task("a", agent, labels={"a": 1})]),  # type: ignore[dict-item]
    (InvalidOption, lambda: [Task("a", agent, claims="src/")]),  # type: ignore[arg-type]
    (InvalidOption, lambda: [Task("a", agent, after=3)]),  # type: ignore[arg-type]
    (InvalidOption, lambda: [Task("a", agent, guard="enforced")]),
    (InvalidOption, lambda: [Task("a", agent, output=3)]),
    (InvalidOption, lambda: [agent]),
    (NotAnAgent, lambda: [Task("a")]),
    (NotAnAgent, lambda: [Task("a", agent, args=(1,))]),
]


@pytest.mark.parametrize(("error", "tasks"), ERRORS)
async def test_bad_tasks_are_refused_before_anything_starts(
    error: type[UsageError], tasks: Callable[[], list[Any]]
) -> None:
    called = []
    async with Runtime(capacity={"gpu": 1}, protected=["protected/"]) as rt:
        with pytest.raises(error) as caught:
            await rt.run([Task("good", lambda: called.append(1)), *tasks()])
        assert rt.progress().total == 0
        # and nothing of it stays behind: the same ids can be used now
        assert (await rt.submit(agent, id="a")).succeeded
    assert called == []
    assert type(caught.value) is error
    assert issubclass(error, interlock.InterlockError)
    assert str(caught.value)


@pytest.mark.parametrize("submit", ["rt", "ctx"])
async def test_so_are_bad_submissions(submit: str) -> None:
    async def tries(ctx: interlock.TaskContext) -> None:
        target: Any = rt if submit == "rt" else ctx
        with pytest.raises(BlankId):
            target.submit(agent, id=" ")
        with pytest.raises(DuplicateId):
            target.submit(agent, id="tries")
        with pytest.raises(UnknownDependency):
            target.submit(agent, after="nobody")
        with pytest.raises(ClaimOutsideWorkspace):
            target.submit(agent, writes="..")
        with pytest.raises(InvalidOption, match="has all its options"):
            target.submit(Task("x", agent), priority=1)
        with pytest.raises(InvalidOption, match="did you mean 'priority'"):
            target.submit(agent, prioritty=1)

    async with Runtime() as rt:
        await rt.submit(tries).result()
        assert rt.progress().total == 1


@pytest.mark.parametrize(
    "options",
    [
        {"max_parallel": 0},
        {"max_parallel": -1},
        {"max_parallel": 1.5},
        {"max_parallel": True},
        {"capacity": {"gpu": -1}},
        {"capacity": {"": 1}},
        {"limits": {"openai": "60/min"}},
        {"grace": "long"},
        {"grace": -1},
        {"workspace": "missing"},
        {"workspace": None},
        {"resume": True},
        {"protected": ["../x"]},
        {"protected": ["["]},
    ],
)
def test_bad_options_of_a_runtime_are_refused_when_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Runtime(**options)


async def test_unknown_tasks_and_resources_are_named() -> None:
    async with Runtime(limits={"openai": Rate(requests="60/min")}) as rt:
        looks: list[Callable[[], object]] = [
            lambda: rt.why("nobody"),
            lambda: rt.handle("nobody"),
            lambda: rt.cancel("nobody"),
            lambda: rt.prioritize("nobody", 1),
            lambda: rt.pause("nobody"),
            lambda: rt.answer("nobody", "yes"),
        ]
        for look in looks:
            with pytest.raises(UnknownTask, match="'nobody'"):
                look()
        with pytest.raises(UsageError, match="gpu"):
            rt.hold_rate("gpu", 1)
        with pytest.raises(InvalidOption):
            rt.set_capacity("slots", -1)
        # nothing of that has done any harm
        assert (await rt.submit(agent)).succeeded


async def test_a_misspelt_dependency_is_answered_with_the_one_that_was_meant() -> None:
    async with Runtime() as rt:
        rt.submit(agent, id="build-api")
        with pytest.raises(UnknownDependency, match="build-api"):
            rt.submit(agent, after="biuld-api")


async def test_the_cycle_is_named() -> None:
    tasks = [Task("a", agent, after="b"), Task("b", agent, after="c"), Task("c", agent, after="a")]
    with pytest.raises(DependencyCycle, match="a -> b -> c -> a"):
        interlock.run(tasks)


async def test_a_submission_after_shutdown_is_refused() -> None:
    async with Runtime() as rt:
        await rt.shutdown(grace=1)
        with pytest.raises(ShuttingDown):
            rt.submit(agent)


def test_two_claims_that_cannot_be_compared_are_an_error() -> None:
    with pytest.raises(InvalidPattern):
        interlock.conflicts(write("["), write("a"))

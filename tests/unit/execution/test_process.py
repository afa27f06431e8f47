"""`interlock.process()` refuses at once what could never run in another process."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlock.errors import NotAnAgent
from interlock.execution.processes.process_agent import Process, process


class TaskContext:
    """Stands in for the runtime's: only its name counts."""


class Greeter:
    def __init__(self, greeting: object) -> None:
        self.greeting = greeting

    def greet(self, name: str) -> str:
        return f"{self.greeting}, {name}"

    def __call__(self) -> None: ...

    @staticmethod
    def shout(name: str) -> str:
        return name.upper()


def add(left: int, right: int) -> int:
    return left + right


async def add_later(left: int, right: int) -> int:
    return left + right


def with_ctx(ctx: object) -> None: ...


def with_annotation(anything: TaskContext) -> None: ...


def with_text_annotation(anything: interlock.TaskContext) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    "agent",
    [
        add,
        add_later,
        time.time,
        functools.partial(add, 1),
        Greeter("hello").greet,
        Greeter.shout,
        "x".join,
    ],
)
def test_what_another_process_can_find_is_taken(agent: Callable[..., Any]) -> None:
    assert process(agent) == Process(agent)


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (lambda: None, "a lambda cannot be sent"),
        (functools.partial(lambda: None), "a lambda cannot be sent"),
        (Greeter(threading.Lock()).greet, "cannot be sent to a process: cannot pickle"),
        (Greeter("hello"), "is no function"),
        (Greeter, "is no function"),
        (42, "is no function"),
        (with_ctx, "a process has none"),
        (with_annotation, "a process has none"),
        (with_text_annotation, "a process has none"),
        (numbers, "is a generator"),
    ],
)
def test_misuse_is_refused_with_what_to_do(agent: Any, reason: str) -> None:
    with pytest.raises(NotAnAgent, match=reason):
        process(agent)


def test_a_nested_function_is_refused() -> None:
    def nested() -> None: ...

    with pytest.raises(NotAnAgent, match="nested is defined inside a function"):
        process(nested)


def test_called_directly_it_is_the_function() -> None:
    assert process(add)(1, 2) == 3


def test_it_may_be_wrapped_twice_and_is_frozen() -> None:
    once = process(add)
    assert process(once) is once
    with pytest.raises(AttributeError):
        once.function = add_later  # type: ignore[misc,assignment]

"""An agent is known again by its name and by what it was made with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

import interlock
from interlock import Task
from interlock.journal.agent_identity import agent_name
from interlock.journal.schema.codec import Codec

Agent = Callable[..., Any]


class Writer:
    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.said: list[str] = []

    def go(self) -> str:
        self.calls += 1
        self.said.append(self.name)
        return self.name

    def run_step(self) -> str:
        return self.go()


def by_default(name: str) -> Agent:
    return lambda n=name: n


def by_keyword_default(name: str) -> Agent:
    def agent(*, n: str = name) -> str:
        return n

    return agent


def by_closure(name: str) -> Agent:
    return lambda: name


def by_closure_of_a_closure(name: str) -> Agent:
    inner = by_closure(name)
    return lambda: [inner()]


def by_method(name: str) -> Agent:
    return Writer(name).go


def by_partial_of_a_method(name: str) -> Agent:
    return functools.partial(Writer(name).go)


def by_object(name: str) -> Any:
    return Writer(name)


def by_what_an_object_was_given(name: str) -> Any:
    agent = Writer("same")
    agent.run_step = lambda: name  # type: ignore[method-assign]
    return agent


WAYS = [
    by_default,
    by_keyword_default,
    by_closure,
    by_closure_of_a_closure,
    by_method,
    by_partial_of_a_method,
    by_object,
    by_what_an_object_was_given,
]


def fingerprint(agent: Any) -> str:
    return Codec().task(Task("a", agent))[1]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_agents_that_were_made_with_something_else_are_different(way: Agent) -> None:
    assert fingerprint(way("a")) == fingerprint(way("a"))
    assert fingerprint(way("a")) != fingerprint(way("b"))


def test_an_agent_stays_the_same_while_it_works() -> None:
    agent, fresh = Writer("a"), Writer("a")
    before = fingerprint(agent.go)
    agent.go()
    assert fingerprint(agent.go) == before == fingerprint(fresh.go)


def test_numbers_of_an_object_without_a_shape_do_not_make_it_another() -> None:
    first, second = Writer("a"), Writer("a")
    second.calls = 7  # or a process id, or an open file
    assert fingerprint(first.go) == fingerprint(second.go)


def test_what_a_function_changes_outside_does_not_make_it_another() -> None:
    def made() -> Agent:
        count, seen = 0, list[int]()

        def agent() -> None:
            nonlocal count
            count += 1
            seen.append(count)

        return agent

    worked = made()
    worked()
    assert fingerprint(worked) == fingerprint(made())


def test_an_object_that_has_every_attribute_is_an_agent_like_others() -> None:
    agent = MagicMock(return_value=1)
    assert agent_name(agent) == "unittest.mock:MagicMock"
    assert fingerprint(agent)


def test_an_agent_that_contains_itself_has_a_fingerprint() -> None:
    agent = Writer("a")
    agent.run_step = agent.go  # type: ignore[method-assign]
    assert fingerprint(agent) == fingerprint(agent)


def test_partials_and_agents_for_processes_go_by_the_name_of_their_function() -> None:
    assert agent_name(functools.partial(by_closure, "x")) == f"{__name__}:by_closure"
    assert agent_name(interlock.process(by_closure)) == f"{__name__}:by_closure"

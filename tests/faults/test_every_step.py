"""Cancellation and exceptions at every step of small runs: what must hold holds all the same.

A `KeyboardInterrupt` strikes agents only. Anywhere else it would end the event loop and with it the
process, as a crash does, and that is the journal's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Literal

import pytest

from interlock.testing.interruptions import interrupt_at
from interlock.testing.simulated_task import SimulatedTask
from interlock.testing.virtual_loop import Fault, VirtualLoop
from tests.faults.scenarios import SCENARIOS
from tests.simulation.runtime.judge import violations_under_fault
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.story import RunStory, all_plans

SEEDS = range(3)

How = Literal["cancel"] | Callable[[], BaseException]


class Struck(Exception):
    pass


class Only:
    """A fault that spares the tasks of the test itself, or all that are no agents."""

    def __init__(self, fault: Fault, agents: frozenset[str] | None) -> None:
        self._fault = fault
        self._agents = agents
        self.struck = False

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        name = task.get_name()
        spared = name in ("main", "follower")
        if self._agents is not None:
            # In the first step of its task no line of an agent has run that could be interrupted.
            spared = name not in self._agents or _has_not_begun(task)
        if not spared:
            before = len(loop.interrupted)
            self._fault.before_step(loop, task)
            self.struck = self.struck or len(loop.interrupted) > before

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        self._fault.after_step(loop, task)


def _has_not_begun(task: SimulatedTask[Any]) -> bool:
    coroutine: Any = task.get_coro()
    return getcoroutinestate(coroutine) == CORO_CREATED


def plays(
    story: RunStory, how: How, agents: frozenset[str] | None = None
) -> Iterator[tuple[int, Play]]:
    plain = Play(story).run()
    assert plain.result is not None
    for step in range(1, plain.result.steps + 1):
        fault = Only(interrupt_at(step, how), agents)
        play = Play(story, [fault]).run()
        if fault.struck:
            yield step, play


def names_of_agents(story: RunStory) -> frozenset[str]:
    ids = [task_id for act in story.acts for task_id in all_plans(act.plans)]
    ids += [
        f"{act.plans[0].task.id}-{n}" for act in story.acts for n in range(act.amount) if act.plans
    ]
    return frozenset(f"{kind}task-{each}" for kind in ("", "thread ", "process ") for each in ids)


def assert_all_holds(story: RunStory, how: How, agents: frozenset[str] | None = None) -> None:
    struck = 0
    for seed in SEEDS:
        for step, play in plays(story._replace(seed=seed), how, agents):
            struck += 1
            broken = violations_under_fault(play, Struck)
            assert not broken, f"seed {seed}, {how} at step {step}: {broken[0]}"
    assert struck > 2


def test_there_are_at_least_ten_scenarios() -> None:
    assert len(SCENARIOS) >= 10


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cancellation_at_any_step_breaks_nothing(name: str) -> None:
    assert_all_holds(SCENARIOS[name], "cancel")


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_exception_at_any_step_breaks_nothing(name: str) -> None:
    assert_all_holds(SCENARIOS[name], Struck)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_interrupt_in_any_step_of_an_agent_is_that_attempts_failure(name: str) -> None:
    story = SCENARIOS[name]
    assert_all_holds(story, KeyboardInterrupt, names_of_agents(story))

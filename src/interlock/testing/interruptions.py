"""Faults at a chosen step, and a program run once for each of its steps.

    for run in every_step(main, seed=7, how="cancel"):
        assert not run.leaked, run.interrupted

A step is what a task does from one await to the next. A fault at step n strikes the n-th step of
the program, whichever task takes it. Up to that step the run is the same as without the fault.
"""

from __future__ import annotations

import math
from asyncio import taskgroups
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from interlock.testing.simulated_task import SimulatedTask
from interlock.testing.virtual_loop import Fault, Hung, VirtualLoop
from interlock.testing.virtual_run import MAX_STEPS, VirtualRun, simulate

T = TypeVar("T")


def interrupt_at(step: int, how: Literal["cancel"] | Callable[[], BaseException]) -> Fault:
    """Cancel the task that takes this step, or raise `how()` in it, at the await before the step.

    An exception replaces whatever the await would have returned or raised, a cancellation
    included. The first step of a task has no await before it: none of its body runs then.
    """
    _check_step(step)
    if how == "cancel":
        return _CancelFault(step)
    if not callable(how):
        raise TypeError(f'how is "cancel" or makes an exception (OSError will do), not {how!r}')
    return _RaiseFault(step, how)


def crash_at(step: int) -> Fault:
    """Drop the loop after this step, as if the process had been killed."""
    _check_step(step)
    return _CrashFault(step)


def every_step(
    main: Callable[[], Coroutine[Any, Any, T]],
    *,
    seed: int = 0,
    how: Literal["cancel", "crash"] | Callable[[], BaseException] = "cancel",
    max_steps: int = MAX_STEPS,
    deadline: float = math.inf,
) -> Iterator[VirtualRun[T]]:
    """Count the steps of `main()`, then run it once for each of them with a fault there.

    `main` is called for every run and sets up everything anew. State that it keeps outside belongs,
    when a run is yielded, to that run. While a task waits for its TaskGroup no exception is thrown
    into it (that await raises nothing but cancellation): such a run has an empty `interrupted`.
    """
    # A cancelled main does not always end as cancelled. CPython #116720: up to 3.12, a TaskGroup in
    # which a child fails at the moment an outer group cancels its parent takes that cancellation
    # for its own and swallows it. So check what the program promises, not how main ended.
    plain = simulate(main, seed=seed, max_steps=max_steps, deadline=deadline)
    for step in range(1, plain.steps + 1):
        fault = crash_at(step) if how == "crash" else interrupt_at(step, how)
        try:
            run = simulate(main, seed=seed, max_steps=max_steps, deadline=deadline, faults=[fault])
        except Hung as hung:
            hung.add_note(f"seed {seed}, {fault} of {plain.steps}")
            raise
        yield run


def _check_step(step: int) -> None:
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")


@dataclass(frozen=True)
class _CancelFault:
    step: int

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        if loop.steps == self.step:
            loop.interrupted.append(f"{self} in {task.waiting()}")
            task.cancel()

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Do nothing: a cancellation comes before the step."""

    def __str__(self) -> str:
        return f"cancelled at step {self.step}"


@dataclass(frozen=True)
class _RaiseFault:
    step: int
    make: Callable[[], BaseException]

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        if loop.steps != self.step:
            return
        frames = task.frames()
        if frames and frames[-1].f_code.co_filename == taskgroups.__file__:
            return  # The group would leave its children behind: such a fault cannot happen.
        loop.interrupted.append(f"{self} in {task.waiting()}")
        task.throw(self.make())

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Do nothing: an exception comes before the step."""

    def __str__(self) -> str:
        return f"{getattr(self.make, '__name__', self.make)} at step {self.step}"


@dataclass(frozen=True)
class _CrashFault:
    step: int

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Do nothing: a crash comes after the step."""

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        if loop.steps == self.step:
            loop.interrupted.append(f"{self} in {task.get_name()}")
            loop.crash()

    def __str__(self) -> str:
        return f"crash after step {self.step}"

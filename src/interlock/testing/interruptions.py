"""Faults at a chosen step, and every program once per step.

    for run in every_step(main, seed=7, how="cancel"):
        assert not run.leaked, run.interrupted

A step is what a task does from one await to the next. A fault at step n meets the n-th step of the
whole program, whichever task makes it; up to there the run is the one without a fault.
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
    """Cancel the task that makes this step, or raise `how()` in it, at the await it comes from.

    An exception takes the place of whatever the await would have brought, a cancellation included.
    In the first step of a task there is no await yet, and none of its body runs.
    """
    _check_step(step)
    if how == "cancel":
        return _Cancel(step)
    if not callable(how):
        raise TypeError(f'how is "cancel" or makes an exception (OSError will do), not {how!r}')
    return _Raise(step, how)


def crash_at(step: int) -> Fault:
    """Drop the loop after this step, as if the process had been killed."""
    _check_step(step)
    return _Crash(step)


def every_step(
    main: Callable[[], Coroutine[Any, Any, T]],
    *,
    seed: int = 0,
    how: Literal["cancel", "crash"] | Callable[[], BaseException] = "cancel",
    max_steps: int = MAX_STEPS,
    deadline: float = math.inf,
) -> Iterator[VirtualRun[T]]:
    """Count the steps of `main()`, then run it once for each of them with a fault there.

    `main` is called for every run and makes its world anew; what it leaves where its caller can see
    it is, when a run is yielded, the world of that run. Where a task waits for its TaskGroup, an
    exception is not thrown (nothing but a cancellation can come out of that await): that run has
    an empty `interrupted`.
    """
    # Do not ask that a cancelled main ends as cancelled. CPython #116720: up to 3.12, a TaskGroup
    # in which a child fails at the moment its parent is cancelled by an outer one takes that
    # cancellation for its own, and swallows it. What must hold is what the program promises.
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
class _Cancel:
    step: int

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        if loop.steps == self.step:
            loop.interrupted.append(f"{self} in {task.waiting()}")
            task.cancel()

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Nothing: a cancellation comes before."""

    def __str__(self) -> str:
        return f"cancelled at step {self.step}"


@dataclass(frozen=True)
class _Raise:
    step: int
    make: Callable[[], BaseException]

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        if loop.steps != self.step:
            return
        frames = task.frames()
        if frames and frames[-1].f_code.co_filename == taskgroups.__file__:
            return  # the group would leave its children behind: a fault that cannot happen
        loop.interrupted.append(f"{self} in {task.waiting()}")
        task.throw(self.make())

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Nothing: an exception comes before."""

    def __str__(self) -> str:
        return f"{getattr(self.make, '__name__', self.make)} at step {self.step}"


@dataclass(frozen=True)
class _Crash:
    step: int

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Nothing: a crash comes after."""

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        if loop.steps == self.step:
            loop.interrupted.append(f"{self} in {task.get_name()}")
            loop.crash()

    def __str__(self) -> str:
        return f"crash after step {self.step}"

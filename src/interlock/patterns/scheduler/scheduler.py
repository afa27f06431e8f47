"""`TaskScheduler`: agents that are ordinary blocking Python, and an async scheduler around them."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, Protocol, Self, TypeVar

from interlock.errors import (
    AttemptsStillAlive,
    BlankId,
    InvalidOption,
    NotAnAgent,
    NotRunning,
    TaskFailed,
)
from interlock.model.claim import Claim
from interlock.model.duration import Duration, seconds, span
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.runtime.killable import killable
from interlock.runtime.limits.options import slots_of
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shared import SharedRuntime
from interlock.runtime.shielded import shielded_to_completion

T_co = TypeVar("T_co", covariant=True)

OnError = Literal["fail_fast", "isolate"]

_KEPT = 1_000
"""How many outcomes are kept for `runtime` to tell of: one run may be open for years."""


class StepAgent(Protocol[T_co]):
    """An agent with a role and one blocking step."""

    @property
    def role(self) -> str: ...

    def run_step(self) -> T_co: ...


class TaskScheduler:
    """Runs the `run_step()` of agents in worker threads, at most `max_concurrent` at once.

        results = anyio.run(TaskScheduler(max_concurrent=3, timeout_s=120).run, agents)

    The results come in the order of the agents. With `on_error="fail_fast"` the first failure
    cancels the others and is raised; with `"isolate"` an exception stands in the place of a result.
    After `timeout_s` seconds of work the caller is answered. A thread cannot be killed: it is told
    (`interlock.cancelled()`), what it returns later is ignored, and what it claims stays its own
    until it ends. `run_in_process=True` gives each agent a process, which is killed when it has not
    stopped within `grace` seconds.

    `claims` says what an agent claims: `claims=lambda agent: [write(f"{agent.role}/**")]`.
    `workspace`, `journal` and `resume` are those of Runtime. It can be used as it is; `async with`
    keeps one run open for all calls of a block, and `runtime` is where to ask `why`.
    """

    def __init__(
        self,
        max_concurrent: int = 3,
        timeout_s: Duration | None = 120.0,
        *,
        on_error: OnError = "fail_fast",
        run_in_process: bool = False,
        claims: Callable[[Any], Iterable[Claim]] | None = None,
        workspace: str | os.PathLike[str] = ".",
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        grace: Duration = 0.0,
        ports: Ports | None = None,
    ) -> None:
        if type(max_concurrent) is not int or max_concurrent < 1:
            raise InvalidOption(
                f"max_concurrent is {max_concurrent!r}; it must be a whole number, 1 or more"
            )
        if claims is not None and not callable(claims):
            raise InvalidOption(
                f"claims is {claims!r}; it is a function that says what an agent claims"
            )
        if on_error not in ("fail_fast", "isolate"):
            raise InvalidOption(f"on_error is {on_error!r}; it can be 'fail_fast' or 'isolate'")
        self._fail_fast = on_error == "fail_fast"
        self._timeout = None if timeout_s is None else seconds(timeout_s, "timeout_s")
        self._in_process = run_in_process
        self._claims = claims
        self._resume = resume
        self._options: dict[str, Any] = {
            "max_parallel": slots_of(max_concurrent, "max_concurrent"),
            "workspace": workspace,
            "journal": journal,
            "order": "first_come",
            "grace": grace,
            # Whoever cannot be stopped must not keep the next agent from being answered.
            "zombies_hold_slots": False,
            "max_outcomes": _KEPT,
            "ports": ports,
        }
        Runtime(
            **self._options, resume=resume
        )  # impossible options raise here, not with the first call
        self._shared = SharedRuntime(self._make, self._opened, leaves_behind=True)
        self._names: set[str] = set()
        """Ids of tasks that this run has seen."""
        self._counts: dict[str, int] = {}
        """How far the names of a role were counted."""

    # -- the run ----------------------------------------------------------------------------

    def _make(self) -> Runtime:
        resume, self._resume = self._resume, None  # what comes after is new
        return Runtime(**self._options, resume=resume)

    def _opened(self, runtime: Runtime) -> None:
        self._names.clear()
        self._counts.clear()

    @property
    def runtime(self) -> Runtime:
        """The Runtime, while agents run or inside `async with`.

        An agent is there under its role; `-2` follows it the second time.
        """
        return self._shared.runtime

    async def __aenter__(self) -> Self:
        _check_loop()
        await self._shared.enter()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        with suppress(AttemptsStillAlive):  # their callers have been told, and nobody waits
            await self._shared.close(cancel=error is not None)

    async def shutdown(self, timeout: Duration = 30.0) -> None:
        """Take no more agents, let those that run finish within `timeout`, then stop them."""
        limit = seconds(timeout, "timeout")
        self._shared.check_loop()
        self._shared.refuse()
        try:
            with suppress(NotRunning):
                await self._shared.runtime.shutdown(limit)
        finally:
            await self._shared.close()

    # -- agents -----------------------------------------------------------------------------

    async def run(self, agents: Iterable[StepAgent[Any]]) -> list[Any]:
        """Run the steps of all agents; what they return, in the order of the agents.

        Raises the first failure (or, with `on_error="isolate"`, none): what the agent raised, or
        TimeoutError; TaskFailed from what an agent had better not raise, such as SystemExit or
        CancelledError. Cancelling it cancels the agents.
        """
        _check_loop()
        listed = _checked(agents)
        self._shared.check_open()
        if not listed:
            return []
        tasks = [self._task(agent) for agent in listed]
        runtime = await self._shared.enter()
        try:
            result = await runtime.run(map(self._named, tasks), fail_fast=self._fail_fast)
        finally:
            self._shared.leave()
            await shielded_to_completion(self._shared.vacated())
        values = [self._value(agent, each) for agent, each in zip(listed, result, strict=True)]
        if self._fail_fast:
            _raise_first(result.outcomes, values)
        return values

    def _task(self, agent: StepAgent[Any]) -> Task:
        claims: Any = () if self._claims is None else self._claims(agent)
        if isinstance(claims, Claim) or not isinstance(claims, Iterable):
            raise InvalidOption(
                f"claims gave {claims!r} for agent {agent.role!r}; it gives a list of claims, or []"
            )
        step: Any = agent.run_step
        if self._in_process:
            try:
                step = killable(step)
            except NotAnAgent as error:
                raise NotAnAgent(f"agent {agent.role!r}: {error}") from error
        return Task(agent.role, step, claims=tuple(claims), timeout=self._timeout)

    def _named(self, task: Task) -> Task:
        """The task under its role, or what comes next if this run has had one of that name."""
        role, count = task.id, self._counts.get(task.id, 0) + 1
        name = role if count == 1 else f"{role}-{count}"
        while name in self._names:  # another role may be called like that
            count += 1
            name = f"{role}-{count}"
        self._names.add(name)
        self._counts[role] = count
        return task if count == 1 else task.renamed(name)

    def _value(self, agent: StepAgent[Any], outcome: Outcome[Any]) -> Any:
        """The result of an agent, or the exception that says why there is none."""
        if outcome.status is State.SUCCEEDED:
            return outcome.result
        if outcome.status is State.TIMED_OUT:
            return TimeoutError(
                f"agent {agent.role!r} was not done after {span(self._timeout or 0)}"
            )
        error = outcome.exception
        if error is None:
            return TaskFailed(outcome)
        error.add_note(f"raised by agent {agent.role!r}")
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            return error
        # To the caller it would mean something else: that it is cancelled itself, or is to exit.
        failed = TaskFailed(outcome)
        failed.__cause__ = error
        return failed


def _raise_first(outcomes: Iterable[Outcome[Any]], values: list[Any]) -> None:
    """Raise what went wrong first; the others were cancelled for it."""
    ended = list(zip(outcomes, values, strict=True))
    bad = [each for each in ended if each[0].status is not State.SUCCEEDED]
    if bad:
        # Whoever was cancelled ended at the same moment as the one for whose sake it was.
        first = min(bad, key=lambda each: (each[0].status is State.CANCELLED, each[0].ended_at))
        raise first[1]


def _checked(agents: Iterable[StepAgent[Any]]) -> list[StepAgent[Any]]:
    """The agents, if that is what they are: what is wrong raises before anything starts."""
    if isinstance(agents, (str, bytes)) or not isinstance(agents, Iterable):
        raise InvalidOption(f"run() takes a list of agents, not {agents!r}")
    listed = list(agents)
    for index, agent in enumerate(listed):
        which = f"agents[{index}]"
        if isinstance(agent, type):
            raise NotAnAgent(f"{which} is the class {agent.__name__}; give an instance of it")
        role = getattr(agent, "role", None)
        if not isinstance(role, str):
            raise NotAnAgent(f"{which} has no role: it needs a text `role`, and `run_step()`")
        if not role.strip():
            raise BlankId(f"the role of {which} is blank")
        step = getattr(agent, "run_step", None)
        if not callable(step):
            raise NotAnAgent(f"{which}, {role!r}, has no run_step() to call")
        if inspect.iscoroutinefunction(step) or inspect.isasyncgenfunction(step):
            raise NotAnAgent(
                f"the run_step() of {which}, {role!r}, is async; agents here are blocking: "
                "submit an async one to a Runtime"
            )
    return listed


def _check_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise NotRunning(
            "a TaskScheduler needs a running asyncio event loop: use asyncio.run(), or anyio.run() "
            "with its asyncio backend; trio is not supported"
        ) from None

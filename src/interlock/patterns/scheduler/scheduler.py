"""`TaskScheduler`: an async scheduler for agents that are ordinary blocking Python."""

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
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.hosting.runtime_factory import RuntimeFactory
from interlock.runtime.killable import killable
from interlock.runtime.limits.options import slots_of
from interlock.runtime.outcome_conversion import deliverable
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime

T_co = TypeVar("T_co", covariant=True)

OnError = Literal["fail_fast", "isolate"]

_MAX_OUTCOMES = 1_000
"""One run may be open for years, so `runtime` keeps only the newest outcomes."""


class StepAgent(Protocol[T_co]):
    """An agent with a role and one blocking step."""

    @property
    def role(self) -> str: ...

    def run_step(self) -> T_co: ...


class TaskScheduler:
    """Runs the `run_step()` of agents in worker threads, at most `max_concurrent` at once.

        results = anyio.run(TaskScheduler(max_concurrent=3, timeout_s=120).run, agents)

    The results come in input order. With `on_error="fail_fast"` the first failure cancels the
    others and is raised; with `"isolate"` an exception takes the place of a result. After
    `timeout_s` seconds of work the caller is answered. A thread cannot be killed: the agent can
    poll `interlock.cancelled()`, its late result is ignored, and its claims stay held until it
    ends. `run_in_process=True` gives each agent a process, which is killed if it has not stopped
    within `grace` seconds.

    `claims` returns what an agent claims: `claims=lambda agent: [write(f"{agent.role}/**")]`.
    `workspace`, `journal` and `resume` are those of Runtime. The scheduler works as a plain object;
    `async with` keeps one run open for all calls of a block. `runtime` explains waiting (`why`).
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
                f"claims is {claims!r}; it must be a function that returns what an agent claims"
            )
        if on_error not in ("fail_fast", "isolate"):
            raise InvalidOption(f"on_error is {on_error!r}; it must be 'fail_fast' or 'isolate'")
        self._fail_fast = on_error == "fail_fast"
        self._timeout = None if timeout_s is None else seconds(timeout_s, "timeout_s")
        self._in_process = run_in_process
        self._claims = claims
        options: dict[str, Any] = {
            "max_parallel": slots_of(max_concurrent, "max_concurrent"),
            "workspace": workspace,
            "journal": journal,
            "order": "first_come",
            "grace": grace,
            # A thread that cannot be stopped must not delay the next agent.
            "zombies_hold_slots": False,
            "max_outcomes": _MAX_OUTCOMES,
            "ports": ports,
        }
        Runtime(**options, resume=resume)  # so invalid options raise here
        self._host = RuntimeHost(
            RuntimeFactory(resume, **options), what="this scheduler", leaves_zombies=True
        )

    # -- the run ----------------------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The Runtime, while agents run or inside `async with`.

        Tasks are named by role; the second task of a role is `role-2`.
        """
        return self._host.runtime

    async def __aenter__(self) -> Self:
        _check_loop()
        await self._host.enter()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        with suppress(AttemptsStillAlive):  # their callers have been answered already
            await self._host.close(cancel=error is not None)

    async def shutdown(self, timeout: Duration = 30.0) -> None:
        """Refuse new agents, let running ones finish within `timeout`, then stop them."""
        await self._host.shutdown(seconds(timeout, "timeout"))

    # -- agents -----------------------------------------------------------------------------

    async def run(self, agents: Iterable[StepAgent[Any]]) -> list[Any]:
        """Run the steps of all agents; return their results in input order.

        Raises the first failure (with `on_error="isolate"`, none): the agent's exception, or
        TimeoutError. An exception that would mean something else to the caller, such as SystemExit
        or CancelledError, is the cause of a TaskFailed. Cancelling the call cancels the agents.
        """
        _check_loop()
        listed = _checked(agents)
        self._host.check_open()
        if not listed:
            return []
        tasks = [self._task(agent) for agent in listed]
        async with self._host.shared() as runtime:
            named = [_renamed(task, runtime.fresh_id(task.id, "-")) for task in tasks]
            result = await runtime.run(named, fail_fast=self._fail_fast)
        values = [self._value(agent, each) for agent, each in zip(listed, result, strict=True)]
        if self._fail_fast:
            _raise_first(result.outcomes, values)
        return values

    def _task(self, agent: StepAgent[Any]) -> Task:
        claims: Any = () if self._claims is None else self._claims(agent)
        if isinstance(claims, Claim) or not isinstance(claims, Iterable):
            raise InvalidOption(
                f"claims returned {claims!r} for agent {agent.role!r}; it must return a list"
            )
        step: Any = agent.run_step
        if self._in_process:
            try:
                step = killable(step)
            except NotAnAgent as error:
                raise NotAnAgent(f"agent {agent.role!r}: {error}") from error
        return Task(agent.role, step, claims=tuple(claims), timeout=self._timeout)

    def _value(self, agent: StepAgent[Any], outcome: Outcome[Any]) -> Any:
        """Return the result of an agent, or the exception that explains why there is none."""
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
        return deliverable(error, outcome)


def _renamed(task: Task, name: str) -> Task:
    return task if name == task.id else task.renamed(name)


def _raise_first(outcomes: Iterable[Outcome[Any]], values: list[Any]) -> None:
    """Raise the first failure; the other agents were cancelled because of it."""
    ended = list(zip(outcomes, values, strict=True))
    bad = [each for each in ended if each[0].status is not State.SUCCEEDED]
    if bad:
        # The failure and the cancellations that it caused have the same end time.
        first = min(bad, key=lambda each: (each[0].status is State.CANCELLED, each[0].ended_at))
        raise first[1]


def _checked(agents: Iterable[StepAgent[Any]]) -> list[StepAgent[Any]]:
    """Validate the agents before anything starts."""
    if isinstance(agents, (str, bytes)) or not isinstance(agents, Iterable):
        raise InvalidOption(f"run() takes a list of agents, not {agents!r}")
    listed = list(agents)
    for index, agent in enumerate(listed):
        which = f"agents[{index}]"
        if isinstance(agent, type):
            raise NotAnAgent(f"{which} is the class {agent.__name__}; pass an instance of it")
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

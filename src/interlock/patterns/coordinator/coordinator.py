"""`ParallelAgentCoordinator`: the subtasks of a task, each for an agent of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from interlock.errors import (
    AttemptOver,
    FatalError,
    InvalidOption,
    NotRunning,
    UnknownTask,
    WouldDeadlock,
)
from interlock.model.duration import Duration, seconds
from interlock.patterns.coordinator.config import settings, whole
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.coordinated_run import CoordinatedRun
from interlock.patterns.coordinator.house import House
from interlock.patterns.coordinator.result_stream import Result, streamed
from interlock.patterns.coordinator.side import Sides
from interlock.patterns.coordinator.state_updates import StateUpdate, StateWriter
from interlock.patterns.coordinator.subtask import SubTask, in_order
from interlock.patterns.coordinator.subtask_agent import AgentFactory, AgentLifecycle
from interlock.patterns.coordinator.subtask_groups import planned
from interlock.patterns.coordinator.update_queue import UpdateQueue
from interlock.runtime.background import Background
from interlock.runtime.context import current
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shared import SharedRuntime
from interlock.runtime.shielded import shielded_to_completion

_KEPT = 10_000
"""The outcomes of so many tasks, and without a journal so many records, can be looked at in
`runtime`: a coordinator may last for long."""


class ParallelAgentCoordinator:
    """Runs the subtasks of a task in parallel, in groups, each with a fresh agent per attempt.

        coordinator = ParallelAgentCoordinator(state_manager, MyAgent, {"max_parallel_agents": 3})
        results = coordinator.execute_parallel(subtasks, parent_task, context)

    `execute_parallel` and `stream` are for code that is not async, and may be called from several
    threads at once; `await execute(...)` is for code that is, while no thread is at work here. The
    limit is for all calls together.
    As it is, a run is opened by the first call and closed after the last; `with` (or `async with`)
    keeps one open for all calls of a block, and `runtime` is where to ask `why`.

    `state_manager` may be None: the journal keeps everything. `journal`, `resume`, `workspace` and
    `grace` are those of Runtime.
    """

    def __init__(
        self,
        state_manager: Any,
        agent_factory: AgentFactory,
        config: Mapping[str, Any] | None = None,
        *,
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        workspace: str | os.PathLike[str] = ".",
        grace: Duration = 30.0,
        ports: Ports | None = None,
    ) -> None:
        self._scribe = StateWriter(state_manager)
        self._settings = settings(config)
        self._factory = agent_factory
        AgentLifecycle(agent_factory, {}, {})  # raises here for what cannot be called
        self._at_once = self._settings.at_once
        self._options = {
            "journal": journal,
            "workspace": workspace,
            "grace": seconds(grace, "grace"),
            "ports": ports,
        }
        self._resume = resume
        self._sides = Sides()
        self._house = House(self._background, self._sides, durable=journal is not None)
        self._shared = SharedRuntime(lambda: Runtime(**self._run_options()), self._opened)
        self._shared_run: CoordinatedRun | None = None

    def _run_options(self) -> dict[str, Any]:
        resume, self._resume = self._resume, None  # what comes after is new
        return {
            **self._options,
            "resume": resume,
            "max_parallel": self._at_once,
            "max_outcomes": _KEPT,
        }

    def _background(self) -> tuple[Background, CoordinatedRun]:
        background = Background(**self._run_options())
        return background, self._coordinated(background.runtime)

    def _opened(self, runtime: Runtime) -> None:
        self._shared_run = self._coordinated(runtime)

    def _coordinated(self, runtime: Runtime) -> CoordinatedRun:
        return CoordinatedRun(runtime, _KEPT if self._options["journal"] is None else None)

    # -- calls ------------------------------------------------------------------------------

    def execute_parallel(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Result]:
        """Run all subtasks and wait for them; one result for each, sorted by subtask_id.

        What is wrong with any of them raises before anything starts. A failure is in its result.
        """
        return in_their_order(self.stream(subtasks, parent_task, context))

    def stream(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> Iterator[Result]:
        """The same, with each result as it comes. Work begins with the first one asked for.

        Whoever stops asking (`break`, then the end of the loop's scope, or `close()`) cancels
        the rest, and is held up until that has been told to stop.
        """
        feed = UpdateQueue()
        return self.results_of(self.call(subtasks, parent_task, context, feed.tell), feed)

    async def execute(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Result]:
        """`execute_parallel` for code on an event loop. Cancelling it cancels the subtasks."""
        results: list[Result] = []
        interruptions: list[BaseException] = []

        def tell(note: StateUpdate) -> None:
            try:
                if (result := self._scribe.write(note)) is not None:
                    results.append(result)
            except BaseException as error:  # noqa: BLE001 - raised again below
                # Ctrl-C, or sys.exit(): it is meant for the caller, not for the run.
                interruptions.append(error)
                assert self._shared_run is not None
                cancel = self._shared_run.cancel_call
                asyncio.get_running_loop().call_soon(cancel, call, "its caller was interrupted")

        call = self.call(subtasks, parent_task, context, tell)
        if call.groups:
            async with self._on_loop():
                assert self._shared_run is not None
                await self._shared_run.carry_out(call)
        if interruptions:
            raise interruptions[0]
        return in_their_order(results)

    @asynccontextmanager
    async def _on_loop(self) -> AsyncIterator[None]:
        self._shared.check_open()
        with self._sides.entered(asyncio.get_running_loop()):
            await self._house.vacated()
            await self._shared.enter()
            try:
                yield
            finally:
                self._shared.leave()
                await shielded_to_completion(self._shared.vacated())

    def call(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any,
        context: Mapping[str, Any] | None,
        tell: Callable[[StateUpdate], None],
        factory: AgentFactory | None = None,
    ) -> CoordinatedCall:
        """For the Orchestrator: a call that has not begun; raises for what is wrong with it."""
        if not isinstance(context, Mapping | None):
            raise InvalidOption(f"context is {context!r}; it maps names to what agents may know")
        groups = planned(subtasks, parent_task, self._settings.strategy)
        life = AgentLifecycle(factory or self._factory, self._settings.given, context or {})
        return CoordinatedCall(
            groups,
            parent_task,
            context or {},
            life,
            self._settings,
            tell,
            tells_states=self._scribe.wants_states,
        )

    def check(
        self, subtasks: Iterable[SubTask], parent_task: Any, context: Mapping[str, Any] | None
    ) -> None:
        """For the Orchestrator: raise for what the open run would not take."""
        call = self.call(subtasks, parent_task, context, lambda _: None)
        if call.groups:
            runtime = self.runtime
            for task in call.tasks(str(call.parent_id), runtime):
                runtime.prepare(task)

    def results_of(
        self, call: CoordinatedCall, feed: UpdateQueue, scribe: StateWriter | None = None
    ) -> Iterator[Result]:
        """Carry out a call on a loop in the background, and write down here what it tells.

        So the state manager is only used on the threads of those who call.
        """
        scribe = scribe or self._scribe
        if not call.groups:
            return
        self._refuse_inside()
        yield from streamed(self._house, call, feed, scribe)

    def _refuse_inside(self) -> None:
        """An agent that waited here would keep its place from those that it waits for."""
        try:
            task = current().task
        except AttemptOver:
            return
        for run in self._runs():
            with suppress(UnknownTask, NotRunning):
                if run.runtime.handle(task.id).task is task:
                    raise WouldDeadlock(
                        f"{task.id!r} is a subtask of this coordinator and would wait for itself; "
                        "use another coordinator, or ctx.run()"
                    )

    # -- steering ---------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel all calls that are in progress, from any thread; their results say so."""
        for run in self._runs():
            with suppress(NotRunning):
                run.runtime.loop_thread.call(run.cancel, "cancelled")

    def set_max_parallel(self, max_parallel_agents: int) -> None:
        """Change how many agents work at once, at any time; those that work go on."""
        chosen = {"max_parallel_agents": max_parallel_agents}
        self._at_once = whole(chosen, "max_parallel_agents", 1)
        for run in self._runs():
            with suppress(NotRunning):
                run.runtime.set_max_parallel(self._at_once)

    @property
    def runtime(self) -> Runtime:
        """The Runtime, during a call or inside `with`: a subtask is `parent/subtask_id` there."""
        for run in self._runs():
            return run.runtime
        raise NotRunning("nothing runs here at the moment, so there is no Runtime to look at")

    def _runs(self) -> list[CoordinatedRun]:
        found = [self._house.run]
        with suppress(NotRunning):
            self._shared.runtime  # noqa: B018 - raises if it is not open
            found.append(self._shared_run)
        return [each for each in found if each is not None]

    # -- the end ----------------------------------------------------------------------------

    def shutdown(self, timeout: Duration = 30.0) -> None:
        """Take no more calls; agents at work may finish within `timeout`, then they are stopped.

        What has not begun is cancelled. AttemptsStillAlive names those that would not stop.
        Calls of `execute` go on: whoever awaits them can cancel them.
        """
        self._shared.refuse()
        self._house.shut_down(seconds(timeout, "timeout"))

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """One run for all calls of a block; unlike after `with`, others may follow."""
        with self._house.entered():
            yield

    def __enter__(self) -> Self:
        self._house.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.cancel()
        self._shared.refuse()
        self._house.refuse()
        self._house.leave(wait=True)

    async def __aenter__(self) -> Self:
        self._shared.check_open()
        loop = asyncio.get_running_loop()
        self._sides.enter(loop)
        try:
            await self._house.vacated()
            await self._shared.enter()
        except BaseException:
            self._sides.leave(loop)
            raise
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._house.refuse()
        try:
            with suppress(FatalError):  # told by its result
                await self._shared.close(cancel=error is not None)
        finally:
            self._sides.leave(asyncio.get_running_loop())


def in_their_order(results: Iterable[Result]) -> list[Result]:
    """Sorted by subtask_id."""
    return sorted(results, key=lambda each: in_order(each["subtask_id"]))

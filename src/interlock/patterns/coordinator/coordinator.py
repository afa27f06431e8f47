"""`ParallelAgentCoordinator`: run the subtasks of a task, each with an agent of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
from interlock.patterns.coordinator.config import parse_settings, whole_number
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.coordinated_run import CoordinatedRun
from interlock.patterns.coordinator.result_stream import (
    Result,
    UpdateQueue,
    leave,
    stream_results,
)
from interlock.patterns.coordinator.state_updates import StateUpdate, StateWriter
from interlock.patterns.coordinator.subtask import SubTask, sort_key
from interlock.patterns.coordinator.subtask_agent import AgentFactory, AgentLifecycle
from interlock.patterns.coordinator.subtask_groups import group_subtasks
from interlock.patterns.coordinator.subtask_prompts import AGENT_CONFIG
from interlock.runtime.context import current
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.hosting.runtime_factory import RuntimeFactory
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime

_MAX_OUTCOMES = 10_000
"""A coordinator may be used for years, so `runtime` keeps only the newest outcomes, and without a
journal only as many records."""


class ParallelAgentCoordinator:
    """Runs the subtasks of a task in parallel, in groups, with a fresh agent for each attempt.

        coordinator = ParallelAgentCoordinator(state_manager, MyAgent, {"max_parallel_agents": 3})
        results = coordinator.execute_parallel(subtasks, parent_task, context)

    `execute_parallel` and `stream` are for blocking code, and may be called from several threads at
    once. `await execute(...)` is for async code; it cannot be used while a thread uses the same
    coordinator. The limit applies to all calls together.

    The coordinator works as a plain object: the first call opens a run, the last one closes it.
    `with` (or `async with`) keeps one run open for all calls of a block. `runtime` explains waiting
    (`why`).

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
        self._writer = StateWriter(state_manager)
        self._settings = parse_settings(config)
        self._factory = agent_factory
        AgentLifecycle(agent_factory, {}, {})  # rejects a factory that is not callable
        self._max_records = _MAX_OUTCOMES if journal is None else None
        self._make_runtime = RuntimeFactory(
            resume,
            max_parallel=self._settings.max_parallel,
            max_outcomes=_MAX_OUTCOMES,
            journal=journal,
            workspace=workspace,
            grace=seconds(grace, "grace"),
            ports=ports,
        )
        self._host = RuntimeHost(
            self._make_runtime,
            self._on_open,
            what="this coordinator",
            thread_calls="execute_parallel(), stream() or a `with` block",
            loop_calls="execute() or an `async with` block",
        )
        self._run: CoordinatedRun | None = None

    def _on_open(self, runtime: Runtime) -> None:
        self._run = CoordinatedRun(runtime, self._max_records)

    def _present_run(self) -> CoordinatedRun:
        runtime = self._host.runtime
        assert self._run is not None
        assert self._run.runtime is runtime
        return self._run

    # -- calls ------------------------------------------------------------------------------

    def execute_parallel(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Result]:
        """Run all subtasks and wait for them; return one result for each, sorted by subtask_id.

        An invalid subtask raises before anything starts. A failure is reported in its result.
        """
        return sort_results(self.stream(subtasks, parent_task, context))

    def stream(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> Iterator[Result]:
        """The same, but yield each result as it arrives. Work starts with the first `next()`.

        Closing the iterator (`break`, then the end of the loop's scope, or `close()`) cancels the
        rest, and returns once it has been told to stop.
        """
        updates = UpdateQueue()
        return self.results_of(self.call(subtasks, parent_task, context, updates.put), updates)

    async def execute(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Result]:
        """`execute_parallel` for code on an event loop. Cancelling it cancels the subtasks."""
        results: list[Result] = []
        interruptions: list[BaseException] = []

        def write(update: StateUpdate) -> None:
            try:
                if (result := self._writer.write(update)) is not None:
                    results.append(result)
            except BaseException as error:  # noqa: BLE001 - raised again below
                # Ctrl-C or sys.exit() in the state manager is meant for the caller, not the run.
                interruptions.append(error)
                cancel = self._present_run().cancel_call
                asyncio.get_running_loop().call_soon(cancel, call, "its caller was interrupted")

        call = self.call(subtasks, parent_task, context, write)
        if call.groups:
            async with self._host.shared():
                await self._present_run().execute(call)
        if interruptions:
            raise interruptions[0]
        return sort_results(results)

    def call(
        self,
        subtasks: Iterable[SubTask],
        parent_task: Any,
        context: Mapping[str, Any] | None,
        on_update: Callable[[StateUpdate], None],
        factory: AgentFactory | None = None,
    ) -> CoordinatedCall:
        """Validate a call without starting it. For the Orchestrator."""
        if not isinstance(context, Mapping | None):
            raise InvalidOption(f"context is {context!r}; it must map names to values for agents")
        groups = group_subtasks(subtasks, parent_task, self._settings.strategy)
        agent_config = (context or {}).get(AGENT_CONFIG)
        if not isinstance(agent_config, Mapping | None):
            raise InvalidOption(f"context[{AGENT_CONFIG!r}] is {agent_config!r}; it must be a dict")
        lifecycle = AgentLifecycle(
            factory or self._factory,
            self._settings.agent_config if agent_config is None else agent_config,
            context or {},
        )
        return CoordinatedCall(
            groups,
            parent_task,
            context or {},
            lifecycle,
            self._settings,
            on_update,
            reports_states=self._writer.wants_states,
        )

    def check(
        self, subtasks: Iterable[SubTask], parent_task: Any, context: Mapping[str, Any] | None
    ) -> None:
        """Raise for what the open run would refuse. For the Orchestrator."""
        call = self.call(subtasks, parent_task, context, lambda _: None)
        if call.groups:
            runtime = self.runtime
            for task in call.tasks(str(call.parent_id), runtime):
                runtime.prepare(task)

    def results_of(
        self, call: CoordinatedCall, updates: UpdateQueue, writer: StateWriter | None = None
    ) -> Iterator[Result]:
        """Run a call on a loop in the background, and write its updates on this thread.

        So the state manager is only used on the threads of callers. For the Orchestrator.
        """
        if not call.groups:
            return
        self._refuse_inside()
        yield from stream_results(self._host, self._enter, call, updates, writer or self._writer)

    def _enter(self) -> CoordinatedRun:
        self._host.enter_from_thread()
        return self._present_run()

    def _refuse_inside(self) -> None:
        """An agent that waited here would keep its slot from the subtasks that it waits for."""
        with suppress(AttemptOver, UnknownTask, NotRunning):
            task = current().task
            if self.runtime.handle(task.id).task is task:
                raise WouldDeadlock(
                    f"{task.id!r} is a subtask of this coordinator and would wait for itself; "
                    "use another coordinator, or ctx.run()"
                )

    # -- control ----------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel all calls in progress, from any thread; their results say so."""
        with suppress(NotRunning):
            run = self._present_run()
            run.runtime.loop_thread.call(run.cancel, "cancelled")

    def set_max_parallel(self, max_parallel_agents: int) -> None:
        """Change how many agents run at once, at any time; running agents continue."""
        given = {"max_parallel_agents": max_parallel_agents}
        max_parallel = whole_number(given, "max_parallel_agents", 1)
        self._make_runtime.options["max_parallel"] = max_parallel
        with suppress(NotRunning):
            self.runtime.set_max_parallel(max_parallel)

    @property
    def runtime(self) -> Runtime:
        """The Runtime, during a call or inside `with`. Tasks are named `parent/subtask_id`."""
        return self._host.runtime

    # -- the end ----------------------------------------------------------------------------

    def shutdown(self, timeout: Duration = 30.0) -> None:
        """Refuse new calls; let running agents finish within `timeout`, then stop them.

        Subtasks that have not started are cancelled. AttemptsStillAlive names those that did not
        stop. Calls of `execute` continue: their callers can cancel them.
        """
        with suppress(FatalError):
            self._host.shutdown_from_thread(seconds(timeout, "timeout"))

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep one run open for all calls of a block; unlike after `with`, others may follow."""
        run = self._enter()
        try:
            yield
        finally:
            leave(self._host, run)

    def __enter__(self) -> Self:
        self._host.enter_from_thread()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            self.cancel()
        with suppress(FatalError):  # it is in a result
            self._host.close_from_thread()

    async def __aenter__(self) -> Self:
        await self._host.enter()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        with suppress(FatalError):  # it is in a result
            await self._host.close(cancel=error is not None)


def sort_results(results: Iterable[Result]) -> list[Result]:
    """Sort results by subtask_id."""
    return sorted(results, key=lambda each: sort_key(each["subtask_id"]))

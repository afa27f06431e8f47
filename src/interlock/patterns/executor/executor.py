"""`ParallelExecutor`: execute a group of agents concurrently and return every outcome."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import os
from functools import partial
from typing import Any, Literal, Self

from interlock.errors import FatalError, InvalidOption, ParallelExecutionError
from interlock.model.claim import Claim
from interlock.model.duration import Duration, seconds
from interlock.model.event import Event, Kind
from interlock.model.stable_names import stable_name
from interlock.model.task import Task
from interlock.patterns.executor.agent_outcomes import StoredOutcome
from interlock.patterns.executor.engine_call import EngineCaller, GroupEngine
from interlock.patterns.executor.events import (
    PARALLEL_GROUP_COMPLETE,
    PARALLEL_GROUP_START,
    event_ids,
    log_event,
)
from interlock.patterns.executor.group_claims import resolve_claims
from interlock.patterns.executor.group_execution import GroupExecution
from interlock.patterns.executor.group_locks import GroupLocks
from interlock.patterns.executor.models import (
    ParallelExecutionGroup,
    ParallelExecutionResult,
    ProgressCallback,
)
from interlock.patterns.executor.resource_locks import (
    InMemoryResourceLock,
    ResourceLock,
    WaitableLock,
)
from interlock.patterns.executor.shutdown_manager import ShutdownManager
from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.context import TaskContext
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.hosting.runtime_factory import RuntimeFactory
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion
from interlock.runtime.submission.parent import plain
from interlock.runtime.submission.submitting import Submitting

_INITIAL_SLOTS = 64
"""Slots grow with demand: only `max_concurrency` of a group limits it."""


class ParallelExecutor:
    """Executes groups of assignments on an engine; one failure does not affect the others.

    Groups may be executed one after another or concurrently. A group whose claims overlap those of
    a running one is refused; with `on_conflict="wait"` it waits. The executor works as a plain
    object; `async with` keeps one run open for all groups of a block. `runtime` explains waiting
    (`why`) and streams events.

    `journal`, `resume` and `workspace` are those of Runtime. An agent that was told to stop gets
    `grace` seconds; its locks stay held until it has stopped.
    """

    def __init__(
        self,
        *,
        engine: GroupEngine,
        shutdown_manager: ShutdownManager | None = None,
        resource_lock: ResourceLock | None = None,
        progress_callback: ProgressCallback | None = None,
        on_conflict: Literal["refuse", "wait"] = "refuse",
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        workspace: str | os.PathLike[str] = ".",
        grace: Duration = 30.0,
        ports: Ports | None = None,
    ) -> None:
        self._caller = EngineCaller(engine)
        if on_conflict not in ("refuse", "wait"):
            raise InvalidOption(f"on_conflict is {on_conflict!r}; it must be 'refuse' or 'wait'")
        if inspect.iscoroutinefunction(progress_callback):
            raise InvalidOption("progress_callback is called, not awaited; pass a plain function")
        self._workspace = WorkspacePaths(workspace)
        self._lock = resource_lock or InMemoryResourceLock(fold_case=self._workspace.fold_case)
        self._waits = on_conflict == "wait"
        if self._waits and not isinstance(self._lock, WaitableLock):
            raise InvalidOption(
                "on_conflict='wait' requires a lock that can be waited for; give "
                f"{type(self._lock).__name__} an `async wait_until_free(resource)`"
            )
        self._manager = shutdown_manager
        self._callback = progress_callback
        self._is_durable = journal is not None
        self._grace = seconds(grace, "grace")
        make = RuntimeFactory(
            resume,
            max_parallel=_INITIAL_SLOTS,
            workspace=self._workspace.root,
            journal=journal,
            grace=self._grace,
            ports=ports,
        )
        self._host = RuntimeHost(make, self._on_open, what="this executor")
        self._executions: dict[str, GroupExecution] = {}
        """Unfinished executions, by the ids of their tasks."""
        self._slots = _INITIAL_SLOTS

    # -- the run ----------------------------------------------------------------------------

    def _on_open(self, runtime: Runtime) -> None:
        self._slots = _INITIAL_SLOTS
        runtime.listen(self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.kind is Kind.SETTLED:
            execution = self._executions.get(event.task_id) or self._executions.get(
                plain(event.task_id)
            )
            if execution is not None:
                execution.settled(event.data)

    @property
    def runtime(self) -> Runtime:
        """The Runtime, while a group is being executed or inside `async with`.

        Tasks are named `group_id/task_id`; the second execution of a group is `group_id~2`.
        """
        return self._host.runtime

    async def __aenter__(self) -> Self:
        await self._host.enter()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._host.close(cancel=error is not None)

    async def shutdown(self, timeout: Duration = 30.0) -> None:
        """Refuse new groups, let running agents finish within `timeout`, then stop them."""
        await self._host.shutdown(seconds(timeout, "timeout"))

    # -- a group ----------------------------------------------------------------------------

    async def execute_group(self, group: ParallelExecutionGroup) -> ParallelExecutionResult:
        """Execute all assignments of a group; return one outcome for each, in input order.

        Raises ResourceConflictError before anything runs if claims overlap or are held by another
        execution, and ParallelExecutionError once all agents have ended if one of them ran out of
        memory or stack. Cancelling the call cancels the agents and releases everything.
        """
        if not isinstance(group, ParallelExecutionGroup):
            raise InvalidOption(f"{group!r} is not a ParallelExecutionGroup")
        began = asyncio.get_running_loop().time()
        claims = resolve_claims(group, self._workspace)
        runtime = await self._host.enter()
        execution = self._execution(runtime, group, claims)
        try:
            await self._execute(runtime, execution)
            outcomes = execution.finish()
        except BaseExceptionGroup as unexpected:
            fields = {"group_id": group.group_id, "reason": "unexpected exception group"}
            log_event(PARALLEL_GROUP_COMPLETE, level=logging.ERROR, caused_by=unexpected, **fields)
            raise
        finally:
            await shielded_to_completion(self._leave(runtime, execution, began))
        for agent_id, fatal in execution.fatal.items():
            raise ParallelExecutionError(
                f"group {group.group_id!r}: agent {agent_id!r} ended with {fatal!r}", outcomes
            ) from fatal
        return ParallelExecutionResult(
            group_id=group.group_id,
            outcomes=outcomes,
            total_duration_seconds=asyncio.get_running_loop().time() - began,
        )

    def _execution(
        self, runtime: Runtime, group: ParallelExecutionGroup, claims: list[tuple[Claim, ...]]
    ) -> GroupExecution:
        """Make an execution under a name that is unused in this run."""
        name = runtime.fresh_id(group.group_id, ids=partial(_ids, group))
        wanted = {
            f"{name}/{each.task_id}": [claim.resource for claim in its]
            for each, its in zip(group.assignments, claims, strict=True)
            if its
        }
        ids = {
            f"{name}/{each.task_id}": event_ids(group.group_id, each) for each in group.assignments
        }
        locks = GroupLocks(self._lock, f"run {runtime.run_id}", wanted, ids)
        execution = GroupExecution(
            group, name, claims, locks, self._caller, self._manager, self._callback
        )
        self._executions.update(dict.fromkeys(execution.assignments, execution))
        needed = len(self._executions) * 2  # the task that holds a group's claims needs one too
        if needed > self._slots:
            self._slots = 2 * needed
            runtime.set_capacity("slots", self._slots)
        return execution

    async def _execute(self, runtime: Runtime, execution: GroupExecution) -> None:
        together = tuple(dict.fromkeys(itertools.chain.from_iterable(execution.claims.values())))
        if not (self._waits and together):
            await self._run(runtime, execution)
            return

        # A task claims what all assignments claim and then runs them as its children. So the group
        # gets everything at once, in its turn, and `why` explains what it waits for.
        @stable_name("executor.group")
        async def gate(ctx: TaskContext) -> list[StoredOutcome]:
            execution.gate = asyncio.get_running_loop().create_future()
            try:
                await self._run(ctx, execution)
            finally:
                execution.gate.set_result(None)
            return execution.to_stored()

        handle = runtime.submit(Task(execution.name, gate, claims=together))
        try:
            outcome = await handle
        except BaseException:
            handle.cancel("its caller was cancelled")
            raise
        if outcome.exception is not None:
            raise outcome.exception
        if execution.gate is None and outcome.result is not None:
            execution.restore(outcome.result)  # it ended before this run was resumed

    async def _run(self, submitting: Submitting, execution: GroupExecution) -> None:
        try:
            await execution.locks.acquire(wait=self._waits)
            await self._submit(submitting, execution)
        finally:
            await shielded_to_completion(execution.release(self._grace))

    async def _submit(self, submitting: Submitting, execution: GroupExecution) -> None:
        self._host.check_open()  # again: acquiring the locks may have taken long
        group = execution.group
        log_event(PARALLEL_GROUP_START, group_id=group.group_id, agents=len(group.assignments))
        tasks = execution.tasks(durable=self._is_durable)
        execution.submitted = True
        try:
            result = await submitting.run(
                tasks,
                fail_fast=group.fail_fast,
                max_parallel=group.max_concurrency,
                name=execution.name,
            )
            outcomes = result.outcomes
        except FatalError as error:
            outcomes = error.outcomes
        except asyncio.CancelledError:
            raise
        except BaseException:
            execution.submitted = False  # refused, or the run has ended: no outcomes will come
            raise
        for outcome in outcomes:
            execution.settled(outcome)  # reused outcomes of an earlier run are not events

    async def _leave(self, runtime: Runtime, execution: GroupExecution, began: float) -> None:
        """Leave the run, whether the group completed, was refused or was cancelled."""
        if execution.gate is not None:
            await asyncio.wait([execution.gate])
        execution.call_when_gone(partial(self._on_gone, runtime, execution))
        if execution.submitted:
            counts = execution.counts
            log_event(
                PARALLEL_GROUP_COMPLETE,
                group_id=execution.group.group_id,
                succeeded=counts.succeeded,
                failed=counts.failed,
                duration=asyncio.get_running_loop().time() - began,
            )
        await self._host.wait_closed()

    def _on_gone(self, runtime: Runtime, execution: GroupExecution) -> None:
        for each in execution.assignments:
            del self._executions[each]
        self._host.leave(runtime)


def _ids(group: ParallelExecutionGroup, name: str) -> list[str]:
    """All task ids of a group under a name."""
    return [name, *(f"{name}/{each.task_id}" for each in group.assignments)]

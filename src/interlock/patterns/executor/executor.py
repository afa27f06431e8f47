"""`ParallelExecutor`: a group of agents at once, and the outcome of each."""

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
from interlock.model.task import Task
from interlock.patterns.executor.agent_outcomes import StoredOutcome
from interlock.patterns.executor.engine_call import AgentEngine, EngineCaller
from interlock.patterns.executor.events import (
    PARALLEL_GROUP_COMPLETE,
    PARALLEL_GROUP_START,
    tell,
)
from interlock.patterns.executor.group_claims import claims_of
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
from interlock.runtime.claim_paths import Workspace
from interlock.runtime.context import TaskContext, plain
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shared import SharedRuntime
from interlock.runtime.shielded import shielded_to_completion
from interlock.runtime.submission.submitting import Submitting

_ROOM = 64
"""Slots to begin with. There are always as many as could be needed: groups limit themselves."""


class ParallelExecutor:
    """Executes groups of assignments on an engine; one failure leaves the others alone.

    Groups may be executed one after another and at the same time: those whose claims overlap are
    refused, or wait with `on_conflict="wait"`. It can be used as it is; `async with` keeps one run
    open for all groups of a block, and `runtime` is where to ask `why` and follow events.

    `journal`, `resume` and `workspace` are those of Runtime. Agents that were told to stop are
    waited for at most `grace` seconds; what they have locked stays locked until they do.
    """

    def __init__(
        self,
        *,
        engine: AgentEngine,
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
            raise InvalidOption(f"on_conflict is {on_conflict!r}; it can be 'refuse' or 'wait'")
        if inspect.iscoroutinefunction(progress_callback):
            raise InvalidOption("progress_callback is called, not awaited: give a plain function")
        self._workspace = Workspace(workspace)
        self._lock = resource_lock or InMemoryResourceLock(fold_case=self._workspace.fold_case)
        self._waits = on_conflict == "wait"
        if self._waits and not isinstance(self._lock, WaitableLock):
            raise InvalidOption(
                "on_conflict='wait' needs a lock that can be waited for: give "
                f"{type(self._lock).__name__} an `async wait_until_free(resource)`"
            )
        self._manager = shutdown_manager
        self._callback = progress_callback
        self._journal = journal
        self._resume = resume
        self._grace = seconds(grace, "grace")
        self._ports = ports
        self._shared = SharedRuntime(self._make, self._opened)
        self._executions: dict[str, GroupExecution] = {}
        """Those that are not over, by the ids of their tasks."""
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        """How often a group of each id was executed in this run."""
        """Ids of tasks that this run has seen: its journal wants each of them once."""
        self._room = _ROOM

    # -- the run ----------------------------------------------------------------------------

    def _make(self) -> Runtime:
        resume, self._resume = self._resume, None  # what comes after is new
        return Runtime(
            max_parallel=_ROOM,
            workspace=self._workspace.root,
            journal=self._journal,
            resume=resume,
            grace=self._grace,
            ports=self._ports,
        )

    def _opened(self, runtime: Runtime) -> None:
        self._names.clear()
        self._counts.clear()
        self._room = _ROOM
        runtime.listen(self._heard)

    def _heard(self, event: Event) -> None:
        if event.kind is Kind.SETTLED:
            execution = self._executions.get(event.task_id) or self._executions.get(
                plain(event.task_id)
            )
            if execution is not None:
                execution.settled(event.data)

    @property
    def runtime(self) -> Runtime:
        """The Runtime, while a group is being executed or inside `async with`.

        A task is there as `group_id/task_id`; `~2` follows the group's id the second time.
        """
        return self._shared.runtime

    async def __aenter__(self) -> Self:
        await self._shared.enter()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._shared.close(cancel=error is not None)

    async def shutdown(self, timeout: Duration = 30.0) -> None:
        """Take no more groups, let what runs finish within `timeout`, then stop it."""
        self._shared.check_loop()
        self._shared.refuse()
        if self._executions:
            await self._shared.runtime.shutdown(timeout)
        await self._shared.close()

    # -- a group ----------------------------------------------------------------------------

    async def execute_group(self, group: ParallelExecutionGroup) -> ParallelExecutionResult:
        """Execute all assignments of a group; one outcome for each, in their order.

        Raises ResourceConflictError before anything runs if claims overlap or are held by somebody
        else, and ParallelExecutionError, when all have ended, if an agent ran out of memory or
        stack. Cancelling it cancels the agents and releases everything.
        """
        if not isinstance(group, ParallelExecutionGroup):
            raise InvalidOption(f"{group!r} is no ParallelExecutionGroup")
        began = asyncio.get_running_loop().time()
        claims = claims_of(group, self._workspace)
        runtime = await self._shared.enter()
        execution = self._execution(runtime, group, claims)
        try:
            await self._execute(runtime, execution, claims)
            outcomes = execution.finish()
        except BaseExceptionGroup as unexpected:
            about = {"group": group.group_id, "reason": "an exception group nobody expected"}
            tell(PARALLEL_GROUP_COMPLETE, level=logging.ERROR, caused_by=unexpected, **about)
            raise
        finally:
            await shielded_to_completion(self._end(execution, began))
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
        """A new execution, under a name that this run has not seen yet."""
        count = self._counts.get(group.group_id, 0) + 1
        name = group.group_id if count == 1 else f"{group.group_id}~{count}"
        while not self._names.isdisjoint(ids := _ids(name, group)):
            count += 1
            name = f"{group.group_id}~{count}"
        self._counts[group.group_id] = count
        self._names |= ids
        wanted = {
            f"{name}/{each.task_id}": [claim.resource for claim in its]
            for each, its in zip(group.assignments, claims, strict=True)
            if its
        }
        holding = GroupLocks(self._lock, f"run {runtime.run_id}", wanted)
        execution = GroupExecution(
            group, name, self._caller, holding, self._manager, self._callback
        )
        self._executions.update(dict.fromkeys(execution.assignments, execution))
        needed = len(self._executions) * 2  # a group that waits has one for itself
        if needed > self._room:
            self._room = 2 * needed
            runtime.set_capacity("slots", self._room)
        return execution

    async def _execute(
        self, runtime: Runtime, execution: GroupExecution, claims: list[tuple[Claim, ...]]
    ) -> None:
        together = tuple(dict.fromkeys(itertools.chain.from_iterable(claims)))
        by_task = dict(zip(execution.assignments, claims, strict=True))
        if not (self._waits and together):
            await self._run(runtime, runtime, execution, by_task)
            return

        # Who waits is a task that claims what all of the group claim: so it gets everything at
        # once, in its turn, and `why` can tell what it waits for.
        async def gate(ctx: TaskContext) -> list[StoredOutcome]:
            execution.gate = asyncio.get_running_loop().create_future()
            try:
                await self._run(runtime, ctx, execution, by_task)
            finally:
                execution.gate.set_result(None)
            return execution.kept()

        handle = runtime.submit(Task(execution.name, gate, claims=together))
        try:
            outcome = await handle
        except BaseException:
            handle.cancel("nobody waits for it any more")
            raise
        if outcome.exception is not None:
            raise outcome.exception
        if execution.gate is None and outcome.result is not None:
            execution.recall(outcome.result)  # done before this run was taken up again

    async def _run(
        self,
        runtime: Runtime,
        submitting: Submitting,
        execution: GroupExecution,
        claims: dict[str, tuple[Claim, ...]],
    ) -> None:
        try:
            await execution.holding.take(wait=self._waits)
            await self._submit(runtime, submitting, execution, claims)
        finally:
            await shielded_to_completion(execution.give_back(self._grace))

    async def _submit(
        self,
        runtime: Runtime,
        submitting: Submitting,
        execution: GroupExecution,
        claims: dict[str, tuple[Claim, ...]],
    ) -> None:
        self._shared.check_open()  # again: locks may have taken their time
        group = execution.group
        tell(PARALLEL_GROUP_START, group=group.group_id, agents=len(group.assignments))
        at_once = None
        if group.max_concurrency is not None and group.max_concurrency < len(group.assignments):
            at_once = f"slots of {execution.name}"
            runtime.set_capacity(at_once, group.max_concurrency, new=True)
        tasks = execution.tasks(claims, at_once, durable=self._journal is not None)
        execution.submitted = True
        try:
            outcomes = (await submitting.run(tasks, fail_fast=group.fail_fast)).outcomes
        except FatalError as error:
            outcomes = error.outcomes
        except asyncio.CancelledError:
            raise
        except BaseException:
            execution.submitted = False  # refused, or the run is over: no outcomes are to come
            raise
        for outcome in outcomes:
            execution.settled(outcome)  # what an earlier run had done is not an event of this one

    async def _end(self, execution: GroupExecution, began: float) -> None:
        """Leave the run; the same whether the group was done, refused or cancelled."""
        if execution.gate is not None:
            await asyncio.wait([execution.gate])
        execution.end(partial(self._gone, execution))
        if execution.submitted:
            counts = execution.counts
            tell(
                PARALLEL_GROUP_COMPLETE,
                group=execution.group.group_id,
                succeeded=counts.succeeded,
                failed=counts.failed,
                duration=asyncio.get_running_loop().time() - began,
            )
        await self._shared.vacated()

    def _gone(self, execution: GroupExecution) -> None:
        for each in execution.assignments:
            del self._executions[each]
        self._shared.leave()


def _ids(name: str, group: ParallelExecutionGroup) -> set[str]:
    """All that a run would know by this name."""
    return {name, *(f"{name}/{each.task_id}" for each in group.assignments)}

"""One execution of a group: its tasks in the Runtime, its locks, its counts and its outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from interlock.model.claim import Claim
from interlock.model.outcome import Outcome
from interlock.model.stable_names import stable_name
from interlock.model.task import Task
from interlock.patterns.executor.agent_outcomes import (
    RefusedByShutdown,
    StoredOutcome,
    from_stored,
    is_fatal,
    log_outcome,
    make_outcome,
    outcome_of,
    to_stored,
)
from interlock.patterns.executor.engine_call import EngineCaller, Unsuccessful
from interlock.patterns.executor.events import PARALLEL_AGENT_START, event_ids, log_event
from interlock.patterns.executor.group_locks import GroupLocks
from interlock.patterns.executor.group_progress import GroupCounts
from interlock.patterns.executor.models import (
    CANCELLED,
    AgentAssignment,
    AgentOutcome,
    ParallelExecutionGroup,
    ProgressCallback,
)
from interlock.patterns.executor.shutdown_manager import ShutdownManager
from interlock.runtime.claim_paths import ResolvedClaims
from interlock.runtime.context import TaskContext
from interlock.runtime.log import LOGGER
from interlock.runtime.shielded import shielded_to_completion
from interlock.runtime.submission.parent import plain


class GroupExecution:
    """The state of a group from before its submission until all of its agents have ended."""

    def __init__(
        self,
        group: ParallelExecutionGroup,
        name: str,
        claims: Sequence[tuple[Claim, ...]],
        locks: GroupLocks,
        call: EngineCaller,
        manager: ShutdownManager | None,
        callback: ProgressCallback | None,
    ) -> None:
        self.group = group
        self.name = name
        """Unique in the run."""
        self.locks = locks
        self.assignments = {f"{name}/{each.task_id}": each for each in group.assignments}
        """By task id in the Runtime."""
        self.claims = dict(zip(self.assignments, claims, strict=True))
        self.counts = GroupCounts(group.group_id, len(group.assignments), callback)
        self.fatal: dict[str, BaseException] = {}
        self.submitted = False
        """Whether every task will get an outcome from the Runtime."""
        self.gate: asyncio.Future[None] | None = None
        """Done when the task that holds the claims of the group has ended, if there is one."""
        self._call = call
        self._manager = manager
        self._started: set[str] = set()
        self._outcomes: dict[str, AgentOutcome] = {}
        self._alive: dict[str, None] = {}
        """Tasks whose agent runs, whether or not it was told to stop."""
        self._all_gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._released = False
        """Whether the locks were released; an agent that ends later releases its own."""
        self._when_gone: Callable[[], None] | None = None

    def tasks(self, *, durable: bool) -> list[Task]:
        """Make the tasks for the Runtime.

        For a durable journal, identity and task are arguments: a group that is executed again with
        other ones must not reuse the old results.
        """

        @stable_name("executor.agent")
        async def agent(ctx: TaskContext, *recorded: Any) -> Any:
            return await self._work(ctx)

        return [
            Task(
                each,
                agent,
                args=(assignment.identity, assignment.task) if durable else (),
                claims=ResolvedClaims(self.claims[each]),
                timeout=assignment.timeout_seconds,
            )
            for each, assignment in self.assignments.items()
        ]

    # -- inside the attempts ----------------------------------------------------------------

    async def _work(self, ctx: TaskContext) -> Any:
        name = self._name(ctx.task.id)
        self._alive[name] = None
        try:
            result = await self._run(name, self.assignments[name])
            if result.total_cost_usd and not ctx.cancelled():
                ctx.usage(cost=result.total_cost_usd)
            if not result.is_success:
                raise Unsuccessful(result)
            return result
        finally:
            if self._released:
                await shielded_to_completion(self.locks.release([name]))
            del self._alive[name]
            self._check_gone()

    async def _run(self, name: str, assignment: AgentAssignment) -> Any:
        if self._manager is None:
            self._record_start(name, assignment)
            return await self._call(assignment)
        runner = asyncio.current_task()
        assert runner is not None
        try:
            self._manager.register_task(assignment.task_id, runner)
        except Exception as error:
            raise RefusedByShutdown(str(error)) from error
        try:
            self._record_start(name, assignment)
            return await self._call(assignment)
        finally:
            try:
                self._manager.unregister_task(assignment.task_id)
            except Exception:  # noqa: BLE001 - the user's manager; the result stands
                LOGGER.exception("unregister_task_failed")

    def _record_start(self, name: str, assignment: AgentAssignment) -> None:
        self._started.add(name)
        self.counts.record_start()
        log_event(PARALLEL_AGENT_START, **event_ids(self.group.group_id, assignment))

    # -- the end ----------------------------------------------------------------------------

    async def release(self, grace: float) -> None:
        """Release the locks once no agent runs; after `grace`, those of agents that have ended."""
        self._check_gone()
        await asyncio.wait([self._all_gone], timeout=grace)
        self._released = True
        gone = [each for each in self.locks.holders if each not in self._alive]
        await self.locks.release(gone)

    def call_when_gone(self, when_gone: Callable[[], None]) -> None:
        """Call a function as soon as none of the agents runs."""
        self._when_gone = when_gone
        self._check_gone()

    def _check_gone(self) -> None:
        if self._alive:
            return
        if (self.counts.is_complete or not self.submitted) and not self._all_gone.done():
            self._all_gone.set_result(None)
        if self._when_gone is not None:
            when_gone, self._when_gone = self._when_gone, None
            when_gone()

    # -- outcomes ---------------------------------------------------------------------------

    def settled(self, outcome: Outcome[Any]) -> None:
        """Record the outcome of a task; a second one is ignored."""
        name = self._name(outcome.task_id)
        if name not in self._outcomes:
            assignment = self.assignments[name]
            if outcome.exception is not None and is_fatal(outcome.exception):
                self.fatal[assignment.agent_id] = outcome.exception
            self._record_end(name, outcome_of(assignment, outcome))

    def to_stored(self) -> list[StoredOutcome]:
        """Return all outcomes as a journal keeps them."""
        return [to_stored(self._outcomes[name]) for name in self.assignments]

    def restore(self, stored: list[StoredOutcome]) -> None:
        """Restore the outcomes that an earlier process stored for this execution."""
        for (name, assignment), each in zip(self.assignments.items(), stored, strict=True):
            self._record_end(name, from_stored(assignment, each))

    def finish(self) -> tuple[AgentOutcome, ...]:
        """Return the outcomes in input order; tasks that were never submitted are cancelled."""
        for name, assignment in self.assignments.items():
            if name not in self._outcomes:
                self._record_end(name, make_outcome(assignment, None, CANCELLED))
        return tuple(self._outcomes[name] for name in self.assignments)

    def _name(self, task_id: str) -> str:
        """The original id of a task: after a crash, children run again under new ids."""
        return task_id if task_id in self.assignments else plain(task_id)

    def _record_end(self, name: str, outcome: AgentOutcome) -> None:
        self._outcomes[name] = outcome
        log_outcome(self.group.group_id, outcome, self.fatal.get(outcome.agent_id))
        self.counts.record_end(success=outcome.is_success, had_started=name in self._started)
        self._check_gone()

"""One execution of a group: its tasks in the Runtime, its agents, its counts and its outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interlock.model.claim import Claim, uses
from interlock.model.outcome import Outcome
from interlock.model.task import Task
from interlock.patterns.executor.agent_outcomes import (
    RefusedByShutdown,
    StoredOutcome,
    is_fatal,
    kept,
    made,
    outcome_of,
    recalled,
    tell_of,
)
from interlock.patterns.executor.engine_call import EngineCaller, Unsuccessful
from interlock.patterns.executor.events import PARALLEL_AGENT_START, tell
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
from interlock.runtime.claim_paths import Resolved
from interlock.runtime.context import TaskContext, plain
from interlock.runtime.log import LOGGER
from interlock.runtime.shielded import shielded_to_completion


class GroupExecution:
    """What is known of a group from before its submission until nothing of it runs any more."""

    def __init__(
        self,
        group: ParallelExecutionGroup,
        name: str,
        call: EngineCaller,
        holding: GroupLocks,
        manager: ShutdownManager | None,
        callback: ProgressCallback | None,
    ) -> None:
        self.group = group
        self.name = name
        """Which no other execution of this run has."""
        self.holding = holding
        self.assignments = {f"{name}/{each.task_id}": each for each in group.assignments}
        """By the ids of their tasks in the Runtime."""
        self.counts = GroupCounts(group.group_id, len(group.assignments), callback)
        self.fatal: dict[str, BaseException] = {}
        self.submitted = False
        """Whether every task will have an outcome in the Runtime."""
        self.gate: asyncio.Future[None] | None = None
        """Done when the task that waited for the group is over, if there was one."""
        self._call = call
        self._manager = manager
        self._begun: set[str] = set()
        self._outcomes: dict[str, AgentOutcome] = {}
        self._alive: dict[str, None] = {}
        """Agents that run, whether or not they were told to stop."""
        self._quiet: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._given_back = False
        """Whether the locks were released; those who are late release their own."""
        self._when_gone: Callable[[], None] | None = None

    def tasks(
        self, claims: Mapping[str, Iterable[Claim]], at_once: str | None, *, durable: bool
    ) -> list[Task]:
        """The tasks for the Runtime; `at_once` is what they may only have a number of at once.

        A durable journal is also told of the identity and the task: whoever executes the group
        again with other ones wants other results.
        """

        async def agent(ctx: TaskContext, *described: Any) -> Any:
            return await self._work(ctx)

        counted = () if at_once is None else (uses(at_once),)
        return [
            Task(
                each,
                agent,
                args=(assignment.identity, assignment.task) if durable else (),
                claims=Resolved((*claims[each], *counted)),
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
            if self._given_back:
                await shielded_to_completion(self.holding.release([name]))
            del self._alive[name]
            self._look()

    async def _run(self, name: str, assignment: AgentAssignment) -> Any:
        if self._manager is None:
            self._begin(name, assignment)
            return await self._call(assignment)
        runner = asyncio.current_task()
        assert runner is not None
        try:
            self._manager.register_task(assignment.task_id, runner)
        except Exception as error:
            raise RefusedByShutdown(str(error)) from error
        try:
            self._begin(name, assignment)
            return await self._call(assignment)
        finally:
            try:
                self._manager.unregister_task(assignment.task_id)
            except Exception:  # noqa: BLE001 - a stranger's manager; what the agent did stands
                LOGGER.exception("unregister_task_failed")

    def _begin(self, name: str, assignment: AgentAssignment) -> None:
        self._begun.add(name)
        self.counts.began()
        about: dict[str, Any] = {"agent": assignment.agent_id, "task": assignment.task_id}
        tell(PARALLEL_AGENT_START, group=self.group.group_id, **about)

    # -- who is there -----------------------------------------------------------------------

    async def give_back(self, most: float) -> None:
        """Release the locks when nothing runs any more, or of all that are gone by then."""
        self._look()
        await asyncio.wait([self._quiet], timeout=most)
        self._given_back = True
        gone = [each for each in self.holding.holders if each not in self._alive]
        await self.holding.release(gone)

    def end(self, when_gone: Callable[[], None]) -> None:
        """Nobody waits for it any more; have this called when nothing of it runs."""
        self._when_gone = when_gone
        self._look()

    def _look(self) -> None:
        if self._alive:
            return
        if (self.counts.all_ended or not self.submitted) and not self._quiet.done():
            self._quiet.set_result(None)
        if self._when_gone is not None:
            gone, self._when_gone = self._when_gone, None
            gone()

    # -- outcomes ---------------------------------------------------------------------------

    def settled(self, outcome: Outcome[Any]) -> None:
        """The Runtime has decided about one of the tasks."""
        name = self._name(outcome.task_id)
        if name not in self._outcomes:
            assignment = self.assignments[name]
            if outcome.exception is not None and is_fatal(outcome.exception):
                self.fatal[assignment.agent_id] = outcome.exception
            self._ended(name, outcome_of(assignment, outcome))

    def kept(self) -> list[StoredOutcome]:
        """What a journal is to keep of all outcomes together."""
        return [kept(self._outcomes[name]) for name in self.assignments]

    def recall(self, earlier: list[StoredOutcome]) -> None:
        """What an earlier process had come to with this execution, as `kept` said it."""
        for (name, assignment), each in zip(self.assignments.items(), earlier, strict=True):
            self._ended(name, recalled(assignment, each))

    def finish(self) -> tuple[AgentOutcome, ...]:
        """The outcomes in the order of the assignments; what has none was never submitted."""
        for name, assignment in self.assignments.items():
            if name not in self._outcomes:
                self._ended(name, made(assignment, None, CANCELLED))
        return tuple(self._outcomes[name] for name in self.assignments)

    def _name(self, task_id: str) -> str:
        """What a task was called at first: after a crash, children come back under new names."""
        return task_id if task_id in self.assignments else plain(task_id)

    def _ended(self, name: str, outcome: AgentOutcome) -> None:
        self._outcomes[name] = outcome
        tell_of(self.group.group_id, outcome, self.fatal.get(outcome.agent_id))
        self.counts.ended(success=outcome.is_success, had_begun=name in self._begun)
        self._look()

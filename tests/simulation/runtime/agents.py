"""The agents of a story: each step of a plan becomes an action of a fake agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from interlock.errors import AgentFailed, AttemptOver, UsageError, WouldDeadlock
from interlock.model.claim import Mode
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.runtime.context import TaskContext
from interlock.testing.fake_agent import Action, FakeAgent, hangs, raises, reads, works, writes
from interlock.testing.simulated_backends import Died
from interlock.testing.site import Visit
from tests.simulation.runtime.record import RateTake
from tests.simulation.runtime.story import RunPlan, RunStep

if TYPE_CHECKING:
    from tests.simulation.runtime.play import Play

ODD_ENDS: dict[str, Callable[[], BaseException]] = {
    "raise": lambda: RuntimeError("it went wrong"),
    "give up": lambda: AgentFailed("no use", retryable=False),
    "later": lambda: AgentFailed("not now", retry_after=3.0),
    "exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "cancel itself": asyncio.CancelledError,
    "group": lambda: BaseExceptionGroup("two", [ValueError("a"), KeyboardInterrupt()]),
    "out of memory": MemoryError,
    "die": Died,
}
FINAL = frozenset({"give up", "exit", "interrupt", "out of memory"})
"""Ends after which there is no further attempt."""


class StoryAgents:
    """Makes fake agents for plans."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._record = play.record
        self._known: dict[str, Any] = {}

    def of(self, plan: RunPlan) -> Any:
        """The agent of a plan, ready to be submitted; always the same one for the same plan."""
        if plan.task.id not in self._known:
            self._known[plan.task.id] = self._make(plan)
        return self._known[plan.task.id]

    def _make(self, plan: RunPlan) -> Any:
        agent = FakeAgent(self._record.site, self._course(plan), swallows=plan.swallows)
        if plan.place == "thread":
            return agent.in_a_thread()
        if plan.place == "process":
            return agent.in_a_process(plan.task.id, plan.task.claims)
        return agent

    def _course(self, plan: RunPlan) -> Action:
        async def action(visit: Visit) -> None:
            visit.value = f"{visit.task_id}#{visit.attempt}"
            self._check_arguments(plan, visit)
            course = plan.courses[min(visit.attempt, len(plan.courses)) - 1]
            for step in course:
                try:
                    await self._action(step)(visit)
                except asyncio.CancelledError:
                    if step.kind == "cancel itself" or not visit.swallow():
                        raise

        return action

    def _check_arguments(self, plan: RunPlan, visit: Visit) -> None:
        for task_id, value in zip(plan.given, visit.given, strict=False):
            if not str(value).startswith(f"{task_id}#"):
                self._record.oddities.append(f"{visit} got {value!r} for the result of {task_id}")
        if plan.given:
            self._record.seen["results delivered"] += 1

    def _action(self, step: RunStep) -> Action:
        if step.kind in ODD_ENDS:
            return raises(ODD_ENDS[step.kind])
        simple: dict[str, Callable[[], Action]] = {
            "work": lambda: works(step.seconds),
            "write": lambda: writes(step.path),
            "read": lambda: reads(step.path),
            "hang": hangs,
        }
        if step.kind in simple:
            return simple[step.kind]()
        method: Callable[[RunStep, Visit], Awaitable[None]]
        method = getattr(self, "_" + step.kind.replace(" ", "_"))
        return lambda visit: method(step, visit)

    # -- ends -------------------------------------------------------------------------------

    async def _return_an_error(self, step: RunStep, visit: Visit) -> None:
        visit.value = ValueError("returned, not raised")

    async def _return_an_outcome(self, step: RunStep, visit: Visit) -> None:
        error = ErrorRecord("Inner", "what it delegated went wrong")
        visit.value = Outcome("inner", State.FAILED, error=error)

    # -- in mid-flight ----------------------------------------------------------------------

    async def _patiently(
        self, step: RunStep, visit: Visit, wait: Callable[[TaskContext], Awaitable[Any]]
    ) -> Any:
        """Wait for something, at most as long as the step has patience; None if it was not granted.

        An agent that is denied, or stopped while it waits in a thread, goes on to its next step.
        """
        context, seen = visit.context, self._record.seen
        assert context is not None
        try:
            async with asyncio.timeout(step.patience):
                answer = await wait(context)
        except TimeoutError:
            seen[f"{step.kind}: lost patience"] += 1
        except WouldDeadlock:
            seen[f"{step.kind}: denied"] += 1
        except AttemptOver:
            visit.notice()
            seen[f"{step.kind}: the attempt was over"] += 1
        except UsageError as error:
            seen[f"{step.kind}: {type(error).__name__}"] += 1
        else:
            seen[f"{step.kind}: granted"] += 1
            return answer
        return None

    async def _extend(self, step: RunStep, visit: Visit) -> None:
        async def wait(context: TaskContext) -> bool:
            reading = [c.resource for c in step.claims if c.mode is Mode.READ]
            writing = [c.resource for c in step.claims if c.mode is Mode.WRITE]
            using = [c for c in step.claims if not c.is_path]
            with visit.waiting():
                await context.extend(reads=reading, writes=writing, uses=using)
            return True

        if await self._patiently(step, visit, wait) is not None:
            now = self._record.site.now()
            visit.holds += [(claim, now) for claim in step.claims]
            for claim in step.claims:
                if claim.is_path and step.path:
                    visit.touch(step.path, wrote=claim.mode is Mode.WRITE)

    async def _take(self, step: RunStep, visit: Visit) -> None:
        async def wait(context: TaskContext) -> Any:
            return await context.acquire("openai", tokens=step.amount)

        taken = await self._patiently(step, visit, wait)
        if taken is None:
            return
        now = self._record.site.now()
        kept = [RateTake(now, "openai", 1, []), RateTake(now, "openai.tokens", step.amount, [])]
        self._record.taken += kept
        if step.seconds:
            await works(step.seconds)(visit)
            if not visit.was_stopped:
                used = max(0, step.amount + int(step.seconds * 4) - 3)
                kept[1].used.append((self._record.site.now(), used))
                taken.used(tokens=used)
                self._record.seen["take: settled"] += 1

    async def _ask(self, step: RunStep, visit: Visit) -> None:
        async def wait(context: TaskContext) -> str:
            with visit.waiting():
                return await context.ask(f"may {visit.task_id} go on?")

        answer = await self._patiently(step, visit, wait)
        if answer not in (None, f"yes, {visit.task_id}"):
            self._record.oddities.append(f"{visit} was answered {answer!r}")

    async def _join(self, step: RunStep, visit: Visit) -> None:
        handles = [self._play.handles[t] for t in step.tasks if t in self._play.handles]

        async def wait(context: TaskContext) -> bool:
            for handle in handles:
                asked = self._record.site.now()
                with visit.waiting():
                    outcome = await handle
                self._record.tell(outcome, asked)
            return True

        if handles:
            await self._patiently(step, visit, wait)

    async def _children(self, step: RunStep, visit: Visit) -> None:
        async def wait(context: TaskContext) -> bool:
            tasks = [self._play.task(plan) for plan in step.plans]
            asked = self._record.site.now()
            with self._play.asking(tasks, context), visit.waiting():
                result = await context.run(tasks)
            for outcome in result.outcomes:
                self._record.tell(outcome, asked)
            return True

        await self._patiently(step, visit, wait)

    async def _orphans(self, step: RunStep, visit: Visit) -> None:
        async def wait(context: TaskContext) -> bool:
            for plan in step.plans:
                self._play.submit(context, plan)
            return True

        await self._patiently(step, visit, wait)

    async def _together(self, step: RunStep, visit: Visit) -> None:
        """Several waits at once."""
        async with asyncio.TaskGroup() as group:
            for each in step.steps:
                group.create_task(_run(self._action(each), visit))
        self._record.seen["several waits at once"] += 1

    # -- reporting -------------------------------------------------------------------------

    async def _report(self, step: RunStep, visit: Visit) -> None:
        async def tell(context: TaskContext) -> bool:
            context.report(0.5, "half of it")
            context.log("a line")
            context.usage(tokens_in=3, cost=0.25)
            return len(context.results) == len(context.task.after)

        if await self._patiently(step, visit, tell) is False:
            self._record.oddities.append(f"{visit} does not see the results of its dependencies")


async def _run(action: Action, visit: Visit) -> None:
    await action(visit)

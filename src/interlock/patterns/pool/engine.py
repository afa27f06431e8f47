"""One run, the agents in it and their sessions: what a pool and a chat have in common."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from interlock.errors import (
    AttemptsStillAlive,
    FatalError,
    InterlockError,
    NotRunning,
    UnknownTask,
)
from interlock.model.claim import uses
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Breaker
from interlock.model.outcome import Outcome
from interlock.model.task import Task
from interlock.patterns.pool.engine_config import AgentFactory, EngineConfig, Maker
from interlock.patterns.pool.member import Member, Question
from interlock.patterns.pool.outages import Outages, breaker_of
from interlock.patterns.pool.sessions import Sessions, claim_on, text_of
from interlock.patterns.pool.task_names import Names
from interlock.runtime.context import TaskContext
from interlock.runtime.handle import Handle
from interlock.runtime.limits.options import slots_of
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.shared import SharedRuntime
from interlock.runtime.within import within

_KEPT = 1_000
"""A pool may live for years: older answers are with whoever asked, and in the journal."""
_ASIDE = "aside"
"""The label of a message that its session does not keep; it is answered with text."""


class Options(NamedTuple):
    """The options of a run, as the systems take them."""

    max_concurrent: int
    journal: str | os.PathLike[str] | None
    resume: bool | str | None
    workspace: str | os.PathLike[str]
    grace: Duration
    breaker: Breaker
    ports: Ports | None


class Engine:
    """Makes agents and asks them, as tasks of one Runtime that is open from the first use on."""

    def __init__(
        self, config: EngineConfig | None, factory: AgentFactory | None, options: Options
    ) -> None:
        self.maker = Maker(config, factory)
        self.sessions = Sessions()
        self.ports = options.ports or Ports()
        self.resumes = bool(options.resume)
        self._options = options._replace(grace=seconds(options.grace, "grace"))
        self._shared = SharedRuntime(self._make, self._opened)
        self.outages = Outages(options.breaker)
        self.names = Names()
        self._process = f"{self.ports.chance.getrandbits(64):x}"
        self._make()  # at once: it has the errors for impossible options

    # -- the run ----------------------------------------------------------------------------

    def _make(self) -> Runtime:
        options = self._options
        models = self.maker.config.models
        return Runtime(
            max_parallel=slots_of(options.max_concurrent, "max_concurrent"),
            workspace=options.workspace,
            journal=options.journal,
            resume=options.resume,
            limits={breaker_of(model): options.breaker for model in models},
            # What is said in a session is said in the order it was asked in.
            order="first_come",
            on_changed="rerun",
            max_outcomes=_KEPT,
            grace=options.grace,
            ports=self.ports,
        )

    def _opened(self, runtime: Runtime) -> None:
        self._options = self._options._replace(resume=None)  # what comes after is new
        self.names = Names()
        self.outages.opened(runtime, {*map(breaker_of, self.maker.config.models)})

    async def open(self) -> Runtime:
        """The run, which stays open; ShuttingDown if there is to be no new work."""
        self._shared.check_open()
        self._shared.check_loop()
        try:
            return self._shared.runtime
        except NotRunning:
            return await self._shared.enter()

    @property
    def runtime(self) -> Runtime:
        """The run; NotRunning if it has not begun, or is over."""
        return self._shared.runtime

    async def close(self, timeout: float | None = None, *, cancel: bool = True) -> list[str]:
        """Take no more work and end the run; the agents that would not stop.

        Without `cancel` what runs is waited for; otherwise it has `timeout` to stop.
        """
        self._shared.check_loop()
        self._shared.refuse()
        alive: tuple[str, ...] = ()
        try:
            runtime = self._shared.runtime
        except NotRunning:
            await self._shared.close(cancel=cancel)
            return []
        try:
            if cancel and timeout is not None:
                await runtime.shutdown(timeout, cancel=True)
        except AttemptsStillAlive as error:
            alive = error.attempts
        try:
            await self._shared.close(cancel=cancel)
        except AttemptsStillAlive as error:
            alive = alive or error.attempts
        except FatalError:
            pass  # whoever asked that agent was told, and so was the log
        labels = (runtime.handle(each).task.labels for each in alive)
        return list(dict.fromkeys(each.get("agent", "") for each in labels))

    # -- making agents ----------------------------------------------------------------------

    def spawning(self, runtime: Runtime, member: Member) -> Task:
        """The task that makes an agent. An agent is no data: each process makes its own."""
        member.spawn = self.names.spawn(member.agent_id, partial(_has_ended, runtime))
        return Task(
            member.spawn,
            self.maker.making(member.entry, member.made),
            kwargs={"process": self._process},
            uses=self.outages.through(runtime, member),
            labels={"agent": member.agent_id},
        )

    # -- asking them ------------------------------------------------------------------------

    async def ask(
        self,
        runtime: Runtime,
        questions: Sequence[Question],
        *,
        fail_fast: bool = False,
        each: Callable[[Question, Outcome[Any]], None] | None = None,
    ) -> list[Outcome[Any]]:
        """Ask agents, and wait for the outcome of each. Whoever stops waiting cancels them.

        `each` is called as the outcomes come, on the loop; it must not raise.
        """
        tasks = [self._asking(runtime, each) for each in questions]
        handles = runtime.submit_all(tasks, fail_fast=fail_fast)
        for question, handle in zip(questions, handles, strict=True):
            self.outages.asked(question.member, handle)
            handle.when_settled(partial(self._settled, question, handle, each))
        try:
            return [await handle for handle in handles]
        except BaseException:
            with contextlib.suppress(InterlockError):  # the run may be over, with all in it
                for handle in handles:
                    handle.cancel("nobody waits for it any more")
                    self.outages.turned_away(handle.task_id)
            raise

    def _asking(self, runtime: Runtime, question: Question) -> Task:
        member, session = question.member, question.session
        if member.answer is None:
            member.answer = self._answering(member)
        through = self.outages.through(runtime, member)
        labels = {"agent": member.agent_id, "session": session.session_id}
        if question.aside:
            labels[_ASIDE] = "yes"
        return Task(
            question.name,
            member.answer,
            prompt=question.prompt,
            kwargs=question.kwargs,
            claims=(claim_on(session.session_id), *map(uses, through)),
            timeout=question.timeout,
            deadline=question.deadline,
            labels=labels,
        )

    def _answering(self, member: Member) -> Callable[..., Awaitable[Any]]:
        async def answer(ctx: TaskContext, **kwargs: Any) -> Any:
            runtime, task = self.runtime, ctx.task
            session = self.sessions.entered(runtime, task.labels["session"], task.id)
            ctx.join(session)
            if member.call is None:
                making = within(self.maker.making(member.entry, member.made))
                await making(ctx, process=self._process)
            assert member.call is not None
            output = await member.call(ctx, **kwargs)
            if _ASIDE in task.labels:
                # Here, and not by whoever asked: a text that cannot be had is the agent's failure.
                return text_of(output)
            ctx.check_open()  # an answer that comes too late was not given
            await self.sessions.said(runtime, session, task.id, ctx.prompt or "", output)
            return output

        return answer

    def _settled(
        self,
        question: Question,
        handle: Handle[Any],
        each: Callable[[Question, Outcome[Any]], None] | None,
        error: BaseException | None,
    ) -> None:
        self.outages.settled(handle)
        if handle.outcome is not None:
            question.member.settled(handle.outcome)
            if each is not None:
                each(question, handle.outcome)


def _has_ended(runtime: Runtime, task_id: str) -> bool:
    """Whether this run has a task of that name which cannot run again."""
    try:
        return runtime.handle(task_id).done()
    except UnknownTask:
        return False

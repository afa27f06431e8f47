"""One run with its agents and their sessions: what a pool, a chat and a roundtable share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from interlock.errors import (
    AttemptsStillAlive,
    FatalError,
    InterlockError,
    NotRunning,
    UnknownTask,
)
from interlock.model.claim import uses
from interlock.model.duration import seconds
from interlock.model.event import Event, Kind
from interlock.model.limits import Breaker
from interlock.model.outcome import Outcome
from interlock.model.stable_names import stable_name
from interlock.model.task import Task
from interlock.patterns.pool.engine_config import AgentFactory, AgentMaker, EngineConfig
from interlock.patterns.pool.model_breakers import ModelBreakers, breaker_of, model_of
from interlock.patterns.pool.pooled_agent import AgentMessage, PooledAgent
from interlock.runtime.context import TaskContext
from interlock.runtime.handle import Handle
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.hosting.runtime_factory import RuntimeFactory
from interlock.runtime.limits.options import slots_of
from interlock.runtime.log import LOGGER
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.session_store import SessionStore, claim_on, text_of
from interlock.runtime.shielded import shielded_to_completion
from interlock.runtime.within import within

_MAX_OUTCOMES = 1_000
"""A pool may run for years: callers have older answers, and so has the journal."""
_GRACE = 30.0
_ASIDE = "aside"
"""The label of a message that its session does not keep."""

OnAnswer = Callable[[AgentMessage, Outcome[Any]], None]


class AgentEngine:
    """Makes agents and sends them messages, as tasks of a Runtime that the first use opens."""

    def __init__(
        self,
        config: EngineConfig | None,
        factory: AgentFactory | None,
        max_concurrent: int,
        *,
        breaker: Breaker | None,
        resume: bool | str | None,
        ports: Ports | None,
        **options: Any,
    ) -> None:
        self.maker = AgentMaker(config, factory)
        self.sessions = SessionStore()
        self.ports = ports or Ports()
        self.resumes = bool(resume)
        rule = breaker or Breaker()
        self._breakers = ModelBreakers(rule)
        self._grace = seconds(options.get("grace", _GRACE), "grace")
        self._process = f"{self.ports.chance.getrandbits(64):x}"
        options |= {
            "max_parallel": slots_of(max_concurrent, "max_concurrent"),
            "limits": {
                name(model): rule
                for model in self.maker.config.models
                for name in (model_of, breaker_of)
            },
            # Messages of one session are answered in the order in which they were sent.
            "order": "first_come",
            "on_changed": "rerun",
            "max_outcomes": _MAX_OUTCOMES,
            "ports": self.ports,
        }
        Runtime(**options, resume=resume)  # impossible options raise here, not with the first call
        make = RuntimeFactory(resume, **options)
        self._host = RuntimeHost(make, self._opened, what="this pool of agents")

    # -- the run ----------------------------------------------------------------------------

    def _opened(self, runtime: Runtime) -> None:
        self._breakers.attach(runtime, self.maker.config.models)

    async def open(self) -> Runtime:
        """The run, which stays open; ShuttingDown if no new work is taken."""
        return await self._host.keep()

    @property
    def runtime(self) -> Runtime:
        """The run; NotRunning before the first use and after the end."""
        return self._host.runtime

    async def close(self, timeout: float | None = None, *, cancel: bool = True) -> list[str]:
        """Take no more work and end the run; returns the agents that did not stop.

        Without `cancel`, running work is waited for. With it, work has `timeout` to stop.
        """
        runtime: Runtime | None = None
        with contextlib.suppress(NotRunning):
            runtime = self._host.runtime
        try:
            if cancel and timeout is not None:
                await self._host.shutdown(timeout, cancel=True)
            else:
                await self._host.close(cancel=cancel)
        except AttemptsStillAlive as error:
            assert runtime is not None
            labels = (runtime.handle(each).task.labels for each in error.attempts)
            return list(dict.fromkeys(each.get("agent", "") for each in labels))
        except FatalError:
            pass  # the caller of that agent was told, and so was the log
        return []

    # -- making agents ----------------------------------------------------------------------

    def spawning(self, runtime: Runtime, agent: PooledAgent) -> Task:
        """The task that makes an agent. Agents are not data: each process makes its own."""
        stem = f"spawn {escaped(agent.agent_id)}"
        agent.spawn_id = runtime.fresh_id(stem)
        while _has_ended(runtime, agent.spawn_id):  # in an earlier process
            agent.spawn_id = runtime.fresh_id(stem)
        return Task(
            agent.spawn_id,
            self.maker.making(agent.entry, agent.made),
            kwargs={"process": self._process},
            uses=self._breakers.used_by_spawning(runtime, agent),
            labels={"agent": agent.agent_id},
        )

    def spawned(self, runtime: Runtime, agent: PooledAgent, outcome: Outcome[Any]) -> None:
        """Report to the breaker of its model how the making of an agent has ended."""
        self._breakers.settled(runtime, agent, outcome)

    # -- messages ---------------------------------------------------------------------------

    async def send(
        self,
        runtime: Runtime,
        messages: Sequence[AgentMessage],
        *,
        fail_fast: bool = False,
        on_answer: OnAnswer | None = None,
    ) -> list[Outcome[Any]]:
        """Send messages and wait for the outcome of each.

        Cancelling the caller cancels them, and returns when the agents have stopped or the grace
        is over. `on_answer` is called on the loop as the outcomes come; it must not raise.
        """
        tasks = [self._task_of(runtime, each) for each in messages]
        handles = runtime.submit_all(tasks, fail_fast=fail_fast)
        for message, handle in zip(messages, handles, strict=True):
            handle.when_settled(partial(self._settled, message, handle, on_answer))
        try:
            return [await handle for handle in handles]
        except BaseException:
            with contextlib.suppress(InterlockError):  # the run may have ended
                for handle in handles:
                    handle.cancel("its caller no longer waits for it")
            await shielded_to_completion(self._stopped(runtime, handles))
            raise

    async def _stopped(self, runtime: Runtime, handles: Sequence[Handle[Any]]) -> None:
        """Wait until the agents of cancelled messages have stopped, at most for the grace."""
        ids = {handle.task_id for handle in handles}
        stopped = asyncio.Event()

        def look(event: Event | None = None) -> None:
            if event is None or event.kind is Kind.ATTEMPT_EXITED:
                # A blocking agent is a child of the task that carries its message.
                running = (runtime.handle(each.task_id) for each in runtime.running())
                if not any(ids & {each.task_id, *(each.parent or ())[:1]} for each in running):
                    stopped.set()

        with contextlib.suppress(InterlockError):  # the run may have ended
            end = runtime.listen(look)
            try:
                look()
                await asyncio.wait_for(stopped.wait(), self._grace)
            except TimeoutError:
                LOGGER.warning("agents_did_not_stop", extra={"interlock": {"tasks": sorted(ids)}})
            finally:
                end()

    def _task_of(self, runtime: Runtime, message: AgentMessage) -> Task:
        agent, session_id = message.to, message.session.session_id
        if agent.answer is None:
            agent.answer = self._answering(agent)
        labels = {"agent": agent.agent_id, "session": session_id}
        if message.aside:
            labels[_ASIDE] = "yes"
        return Task(
            message.task_id,
            agent.answer,
            prompt=message.prompt,
            kwargs=message.kwargs,
            claims=(
                claim_on(session_id),
                *map(uses, self._breakers.used_by_messages(runtime, agent)),
            ),
            timeout=message.timeout,
            deadline=message.deadline,
            labels=labels,
        )

    def _answering(self, agent: PooledAgent) -> Callable[..., Awaitable[Any]]:
        @stable_name("pool.answer")
        async def answer(ctx: TaskContext, **kwargs: Any) -> Any:
            runtime, task = self.runtime, ctx.task
            session = self.sessions.enter(runtime, task.labels["session"], task.id)
            ctx.join(session)
            if agent.call is None:
                making = within(self.maker.making(agent.entry, agent.made))
                await making(ctx, process=self._process)
            assert agent.call is not None
            output = await agent.call(ctx, **kwargs)
            if _ASIDE in task.labels:
                # Here and not in the caller: an output without a text is a failure of the agent.
                return text_of(output)
            ctx.check_open()  # an answer that comes too late is not kept
            await self.sessions.add_exchange(runtime, session, task.id, ctx.prompt or "", output)
            return output

        return answer

    def _settled(
        self,
        message: AgentMessage,
        handle: Handle[Any],
        on_answer: OnAnswer | None,
        error: BaseException | None,
    ) -> None:
        if handle.outcome is not None:
            with contextlib.suppress(NotRunning):
                self._breakers.settled(self.runtime, message.to, handle.outcome)
            message.to.settled(handle.outcome)
            if on_answer is not None:
                on_answer(message, handle.outcome)


def message_id(runtime: Runtime, to: str) -> str:
    """The id of the next message to an agent, or in a session: `a#1`, `a#2`, ..."""
    return runtime.fresh_id(escaped(to), "#", numbered=True)


def escaped(name: str) -> str:
    """A user's name in which `#` and `~` cannot be taken for ours: they are doubled."""
    return name.replace("#", "##").replace("~", "~~")


def _has_ended(runtime: Runtime, task_id: str) -> bool:
    try:
        return runtime.handle(task_id).done()
    except UnknownTask:
        return False

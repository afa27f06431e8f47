"""`AgentPool`: named agents that live long, with a session each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from interlock.errors import AgentError, DuplicateId, FatalError, NotRunning
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Breaker
from interlock.model.outcome import Outcome
from interlock.patterns.pool.agent_status import status_of
from interlock.patterns.pool.answers import answer, answered, checked, not_spawned
from interlock.patterns.pool.engine import Engine, Options
from interlock.patterns.pool.engine_config import AgentFactory, EngineConfig, Entry, listed
from interlock.patterns.pool.member import Member, Question
from interlock.runtime.log import LOGGER
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.session import Session
from interlock.runtime.shielded import shielded_to_completion

_POINTERS = "pool"
"""The records that know which session an agent of a pool had last."""


class AgentPool:
    """Spawns agents and gives them tasks, many at once and one at a time in each session.

    It can be used as it is, from the first call until `shutdown()`; `async with` shuts it down.
    Meanwhile `runtime` is where to ask `why` and follow events.

    `journal`, `resume`, `workspace` and `grace` are those of Runtime. A `breaker` stands before
    every model: after so many failures in a row nothing is asked of it for a while.
    """

    MAX_CONCURRENT: ClassVar[int] = 5

    def __init__(
        self,
        config: EngineConfig | None = None,
        *,
        max_concurrent: int = MAX_CONCURRENT,
        agent_factory: AgentFactory | None = None,
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        workspace: str | os.PathLike[str] = ".",
        grace: Duration = 30.0,
        breaker: Breaker | None = None,
        ports: Ports | None = None,
    ) -> None:
        options = Options(
            max_concurrent, journal, resume, workspace, grace, breaker or Breaker(), ports
        )
        self.engine = Engine(config, agent_factory, options)
        """For other systems, which let these agents work."""
        self._max_concurrent = max_concurrent
        self._members: dict[str, Member] = {}
        self._shut_down = False

    @property
    def runtime(self) -> Runtime:
        """The Runtime, from the first call until the shutdown.

        Spawning agent `a` is the task `spawn a` there, and its messages are `a#1`, `a#2`, ... In an
        id that has a `#` or `~` itself it is doubled.
        """
        return self.engine.runtime

    async def __aenter__(self) -> Self:
        await self.engine.open()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._end(None, cancel=error is not None)

    # -- spawning ---------------------------------------------------------------------------

    async def spawn_agents(self, agents: Iterable[Entry]) -> dict[str, str]:
        """Make agents, each with a session of its own: all of them or none.

        For each id `running`; if one could not be made, `error: ...` for that one and `cancelled`
        for the others. Raises, before anything is made, for an id that is there already and for an
        agent that nobody knows how to make.
        """
        members: dict[str, Member] = {}
        for number, given in enumerate(listed(agents, "spawn_agents")):
            entry = self.engine.maker.entry(given, f"agent number {number}")
            agent_id = entry["agent_id"]
            if agent_id in members or agent_id in self._members:
                where = "twice in this batch" if agent_id in members else "in the pool already"
                raise DuplicateId(f"agent {agent_id!r} is {where}")
            members[agent_id] = Member(entry)
        self._members.update(members)  # at once: nobody else may take these ids meanwhile
        try:
            found = await self._spawn(members)
        except BaseException:
            await shielded_to_completion(self._roll_back(members))
            raise
        if any(each != "running" for each in found.values()):
            await shielded_to_completion(self._roll_back(members))
        return found

    async def _spawn(self, members: Mapping[str, Member]) -> dict[str, str]:
        runtime = await self.engine.open()
        tasks = [self.engine.spawning(runtime, each) for each in members.values()]
        try:
            outcomes = (await runtime.run(tasks, fail_fast=True)).outcomes
        except FatalError as error:
            outcomes = error.outcomes
        if not all(each.succeeded for each in outcomes):
            return dict(zip(members, map(not_spawned, outcomes), strict=True))
        for agent_id, member in members.items():
            member.session = await self._session_of(runtime, agent_id, member)
            member.since = self.engine.ports.wall()
        return dict.fromkeys(members, "running")

    async def _session_of(self, runtime: Runtime, agent_id: str, member: Member) -> Session:
        """A new session; after a resume, the one that the agent had."""
        pointers = runtime.records(_POINTERS)
        name = pointers.get(agent_id) if self.engine.resumes else None
        name = name or f"{agent_id}@{runtime.run_id}"
        count, wanted = 1, name
        while not self.engine.resumes and self.engine.sessions.find(runtime, wanted) is not None:
            count += 1
            wanted = f"{name}~{count}"
        session = await self.engine.sessions.of_agent(runtime, _session(wanted, member))
        await pointers.put(agent_id, wanted)
        return session

    async def _roll_back(self, members: Mapping[str, Member]) -> None:
        for agent_id, member in members.items():
            self._members.pop(agent_id, None)
            session = member.session
            if session is not None and not session.messages:
                with contextlib.suppress(NotRunning):  # it has been shut down meanwhile
                    runtime = self.engine.runtime
                    await self.engine.sessions.forget(runtime, session.session_id)

    # -- tasks ------------------------------------------------------------------------------

    async def run_parallel_tasks(
        self, tasks: Iterable[Entry], timeout: Duration = 300.0, *, fail_fast: bool = False
    ) -> list[dict[str, Any]]:
        """Give tasks to agents; a dict for each, in their order.

        A failure leaves the others alone, unless `fail_fast`. `timeout` counts from the start of
        each task. Tasks for the same session are done one at a time, in their order.
        """
        entries = [checked(each, n) for n, each in enumerate(listed(tasks, "run_parallel_tasks"))]
        limit = seconds(timeout, "timeout")
        runtime = await self.engine.open()
        answers: list[dict[str, Any] | None] = []
        questions: list[Question] = []
        for entry in entries:
            try:
                member, session = await self._addressed(runtime, entry)
            except AgentError as error:
                answers.append(answer(entry["agent_id"], "error", error=str(error)))
                continue
            answers.append(None)
            name = self.engine.names.message(member.agent_id)
            kwargs = entry.get("kwargs") or {}
            questions.append(Question(member, session, entry["prompt"], kwargs, name, limit))
        outcomes = iter(await self.engine.ask(runtime, questions, fail_fast=fail_fast))
        asked = iter(questions)
        return [
            self._answered(next(asked).member.agent_id, next(outcomes)) if each is None else each
            for each in answers
        ]

    async def _addressed(self, runtime: Runtime, entry: Entry) -> tuple[Member, Session]:
        """Who is asked, and in which session."""
        member, wanted = self.member(entry["agent_id"]), entry.get("session_id")
        assert member.session is not None
        if wanted is None or wanted == member.session.session_id:
            return member, member.session
        return member, await self.engine.sessions.of_agent(runtime, _session(wanted, member))

    def member(self, agent_id: str) -> Member:
        """An agent that can be asked; AgentError if there is none of that id."""
        member = self._members.get(agent_id)
        if member is None:
            known = ", ".join(map(repr, self._members)) or "none"
            raise AgentError(f"there is no agent {agent_id!r}; the pool has {known}", agent_id)
        if member.session is None:
            raise AgentError(f"agent {agent_id!r} is still being spawned", agent_id)
        return member

    def _answered(self, agent_id: str, outcome: Outcome[Any]) -> dict[str, Any]:
        refused = self.engine.outages.turned_away(outcome.task_id)
        if refused is not None:
            return answer(agent_id, "error", error=refused)
        return answered(agent_id, outcome)

    # -- looking, leaving -------------------------------------------------------------------

    def get_pool_status(self) -> dict[str, Any]:
        """How many agents there are, and what each of them does at this moment.

        Any thread may ask: it is all looked up on the loop, in one go.
        """
        with contextlib.suppress(NotRunning):
            runtime = self.engine.runtime
            return runtime.loop_thread.call(self._status, runtime)
        return self._status(None)

    def _status(self, runtime: Runtime | None) -> dict[str, Any]:
        members = dict(self._members)  # without a run there is no loop to look on
        now = self.engine.ports.wall()
        return {
            "total_agents": len(members),
            "max_concurrent": self._max_concurrent,
            "agents": status_of(members, runtime, now, ending=self._shut_down),
            "shutdown_requested": self._shut_down,
        }

    async def shutdown(self, timeout: Duration = 30.0) -> list[str]:
        """Cancel what runs, end the pool and empty it; the agents that would not stop.

        All of them have the same `timeout`, together. Twice is fine.
        """
        return await self._end(seconds(timeout, "timeout"), cancel=True)

    async def _end(self, timeout: float | None, *, cancel: bool) -> list[str]:
        self._shut_down = True
        try:
            stubborn = await self.engine.close(timeout, cancel=cancel)
        finally:
            self._members.clear()
        if stubborn:
            about = {"run": "", "agents": stubborn}
            LOGGER.warning("agents_would_not_stop", extra={"interlock": about})
        return stubborn


def _session(name: str, member: Member, session_type: str = "pool") -> Session:
    return Session(
        name,
        agent_id=member.agent_id,
        session_type=session_type,
        model=member.model,
        system_prompt=member.entry["system_prompt"],
    )

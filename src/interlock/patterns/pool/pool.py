"""`AgentPool`: named, long-lived agents, each with a session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from interlock.errors import AgentError, DuplicateId, FatalError, NotRunning
from interlock.model.duration import Duration, seconds
from interlock.patterns.pool.agent_engine import message_id
from interlock.patterns.pool.agent_status import status_of
from interlock.patterns.pool.answers import answer, checked, refused_answer, spawn_failure
from interlock.patterns.pool.engine_config import Entry, listed
from interlock.patterns.pool.engine_user import EngineUser
from interlock.patterns.pool.pooled_agent import AgentMessage, PooledAgent
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime
from interlock.runtime.session import Session
from interlock.runtime.shielded import shielded_to_completion

_LAST_SESSIONS = "pool"
"""The records of which session each agent of a pool had last."""


class AgentPool(EngineUser):
    """Spawns agents and gives them tasks: many at once, one at a time in each session.

    A pool can be used as it is, from the first call until `shutdown()`, which also empties it;
    `async with` shuts it down. In between, `runtime` is where to ask `why` and follow events.
    """

    MAX_CONCURRENT: ClassVar[int] = 5

    # -- spawning ---------------------------------------------------------------------------

    async def spawn_agents(self, agents: Iterable[Entry]) -> dict[str, str]:
        """Make agents, each with a session of its own: all of them or none.

        Returns `running` for each id; if one could not be made, `error: ...` for that one and
        `cancelled` for the others. Raises, before anything is made, for an id that is in the pool
        already and for an agent that cannot be made.
        """
        batch: dict[str, PooledAgent] = {}
        for number, given in enumerate(listed(agents, "spawn_agents")):
            entry = self.engine.maker.entry(given, f"agent number {number}")
            agent_id = entry["agent_id"]
            if agent_id in batch or agent_id in self._agents:
                where = "twice in this batch" if agent_id in batch else "in the pool already"
                raise DuplicateId(f"agent {agent_id!r} is {where}")
            batch[agent_id] = PooledAgent(entry)
        self._agents.update(batch)  # at once, so that no other call takes these ids meanwhile
        statuses: dict[str, str] = {}
        try:
            statuses = await self._spawn(batch)
        finally:
            if not statuses or any(each != "running" for each in statuses.values()):
                await shielded_to_completion(self._roll_back(batch))
        return statuses

    async def _spawn(self, batch: Mapping[str, PooledAgent]) -> dict[str, str]:
        runtime = await self.engine.open()
        tasks = [self.engine.spawning(runtime, each) for each in batch.values()]
        try:
            outcomes = (await runtime.run(tasks, fail_fast=True)).outcomes
        except FatalError as error:
            outcomes = error.outcomes
        for agent, outcome in zip(batch.values(), outcomes, strict=True):
            self.engine.spawned(runtime, agent, outcome)
        if not all(each.succeeded for each in outcomes):
            return dict(zip(batch, map(spawn_failure, outcomes), strict=True))
        for agent in batch.values():
            agent.session = await self._first_session(runtime, agent)
            agent.since = self.engine.ports.wall()
        return dict.fromkeys(batch, "running")

    async def _first_session(self, runtime: Runtime, agent: PooledAgent) -> Session:
        """A new session; after a resume, the one that the agent had."""
        last, sessions = runtime.records(_LAST_SESSIONS), self.engine.sessions
        name = last.get(agent.agent_id) if self.engine.resumes else None
        name = name or f"{agent.agent_id}@{runtime.run_id}"
        count, session_id = 1, name
        while not self.engine.resumes and sessions.find(runtime, session_id) is not None:
            count += 1
            session_id = f"{name}~{count}"
        session = await sessions.of_agent(runtime, _session(session_id, agent))
        await last.put(agent.agent_id, session_id)
        return session

    async def _roll_back(self, batch: Mapping[str, PooledAgent]) -> None:
        for agent_id, agent in batch.items():
            self._agents.pop(agent_id, None)
            session = agent.session
            if session is not None and not session.messages:
                with contextlib.suppress(NotRunning):  # the pool was shut down meanwhile
                    await self.engine.sessions.delete(self.engine.runtime, session.session_id)

    # -- tasks ------------------------------------------------------------------------------

    async def run_parallel_tasks(
        self, tasks: Iterable[Entry], timeout: Duration = 300.0, *, fail_fast: bool = False
    ) -> list[dict[str, Any]]:
        """Give tasks to agents; returns a dict for each, in order.

        A failure leaves the others alone, unless `fail_fast`. `timeout` counts from the start of
        each task. Tasks in the same session are carried out one at a time, in order.
        """
        entries = [checked(each, n) for n, each in enumerate(listed(tasks, "run_parallel_tasks"))]
        limit = seconds(timeout, "timeout")
        runtime = await self.engine.open()
        answers: list[dict[str, Any] | None] = []
        messages: list[AgentMessage] = []
        for entry in entries:
            try:
                agent = self.agent(entry["agent_id"])
                session = await self._session(runtime, agent, entry.get("session_id"))
            except AgentError as error:
                answers.append(refused_answer(entry["agent_id"], str(error)))
                continue
            answers.append(None)
            kwargs, task_id = entry.get("kwargs") or {}, message_id(runtime, agent.agent_id)
            messages.append(AgentMessage(agent, session, entry["prompt"], kwargs, task_id, limit))
        outcomes = iter(await self.engine.send(runtime, messages, fail_fast=fail_fast))
        return [
            answer(entry["agent_id"], next(outcomes)) if each is None else each
            for entry, each in zip(entries, answers, strict=True)
        ]

    async def _session(
        self, runtime: Runtime, agent: PooledAgent, session_id: str | None
    ) -> Session:
        assert agent.session is not None
        if session_id is None or session_id == agent.session.session_id:
            return agent.session
        return await self.engine.sessions.of_agent(runtime, _session(session_id, agent))

    def agent(self, agent_id: str) -> PooledAgent:
        """For other systems: an agent that is ready; AgentError if there is none of that id."""
        agent = self._agents.get(agent_id)
        if agent is None:
            known = ", ".join(map(repr, self._agents)) or "none"
            raise AgentError(f"there is no agent {agent_id!r}; the pool has {known}", agent_id)
        if agent.session is None:
            raise AgentError(f"agent {agent_id!r} is still being spawned", agent_id)
        return agent

    # -- status and shutdown ----------------------------------------------------------------

    def get_pool_status(self) -> dict[str, Any]:
        """How many agents there are, and what each does now: one consistent snapshot.

        It may be called from any thread.
        """
        with contextlib.suppress(NotRunning):
            runtime = self.engine.runtime
            return runtime.loop_thread.call(self._status, runtime)
        return self._status(None)

    def _status(self, runtime: Runtime | None) -> dict[str, Any]:
        agents = dict(self._agents)  # a copy: without a run, this may be any thread
        now = self.engine.ports.wall()
        return {
            "total_agents": len(agents),
            "max_concurrent": self._max_concurrent,
            "agents": status_of(agents, runtime, now, is_ending=self._is_shut_down),
            "shutdown_requested": self._is_shut_down,
        }

    async def _end(self, timeout: float | None, *, cancel: bool) -> list[str]:
        try:
            alive = await super()._end(timeout, cancel=cancel)
        finally:
            self._agents.clear()
        if alive:
            LOGGER.warning("agents_did_not_stop", extra={"agents": alive})
        return alive


def _session(session_id: str, agent: PooledAgent) -> Session:
    return Session(
        session_id,
        agent_id=agent.agent_id,
        session_type="pool",
        model=agent.model,
        system_prompt=agent.entry["system_prompt"],
    )

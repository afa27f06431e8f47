"""`SessionManager` and `ChatEngine`: conversations with single agents, without a pool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from interlock.errors import AgentError, InvalidOption
from interlock.model.duration import Duration, seconds
from interlock.model.outcome import State
from interlock.patterns.pool.agent_engine import message_id
from interlock.patterns.pool.chat_answer import chat_answer
from interlock.patterns.pool.engine_config import AgentFactory, EngineConfig
from interlock.patterns.pool.engine_user import EngineUser
from interlock.patterns.pool.pooled_agent import AgentMessage, PooledAgent
from interlock.runtime.session import Session
from interlock.runtime.session_store import check_owner


class SessionManager(EngineUser):
    """Sessions that outlive the program if they have a journal.

    The options are those of `AgentPool`. It can be used as it is, from the first call until
    `shutdown()`; `async with` shuts it down.
    """

    async def create_session(
        self,
        agent_id: str,
        session_type: str = "chat",
        model: str | None = None,
        system_prompt: str | None = None,
        *,
        session_id: str | None = None,
    ) -> Session:
        """Create a session of an agent; what is left out comes from the configuration."""
        given = {"agent_id": agent_id, "model": model, "system_prompt": system_prompt}
        entry = self.engine.maker.entry(given, f"a session of agent {agent_id!r}")
        runtime = await self.engine.open()
        sessions, count, name = self.engine.sessions, 1, session_id or f"{agent_id}-1"
        while session_id is None and sessions.find(runtime, name) is not None:
            count += 1
            name = f"{agent_id}-{count}"
        about = {"model": entry["model"], "system_prompt": entry["system_prompt"]}
        session = Session(name, agent_id=agent_id, session_type=session_type, **about)
        return await sessions.create(runtime, session)

    async def get_session(self, session_id: str) -> Session:
        """Return a session by its id; AgentError if there is none."""
        found = self.engine.sessions.find(await self.engine.open(), session_id)
        if found is None:
            raise AgentError(f"there is no session {session_id!r}; create it with create_session()")
        return found

    async def list_sessions(self, agent_id: str | None = None) -> list[Session]:
        """Return all sessions of the journal, or those of one agent."""
        found = self.engine.sessions.all(await self.engine.open())
        return [each for each in found if agent_id in (None, each.agent_id)]

    def agent_of(self, session: Session) -> PooledAgent:
        """For chats: the agent of a session, which all of them share."""
        # By session: two sessions of one agent may have different models.
        agent = self._agents.get(session.session_id)
        if agent is None:
            about = {"model": session.model, "system_prompt": session.system_prompt}
            given = {"agent_id": session.agent_id, **about}
            entry = self.engine.maker.entry(given, f"session {session.session_id!r}")
            agent = self._agents[session.session_id] = PooledAgent(entry)
        return agent


class ChatEngine:
    """Sends messages to agents, each in one of its sessions.

    Without `sessions` it makes a SessionManager of its own from the other options.
    """

    def __init__(
        self,
        config: EngineConfig | None = None,
        sessions: SessionManager | None = None,
        *,
        agent_factory: AgentFactory | None = None,
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        if sessions is not None and (config, agent_factory, journal) != (None, None, None):
            raise InvalidOption("sessions= has config, agent_factory and journal of its own")
        self.sessions = sessions or SessionManager(
            config, agent_factory=agent_factory, journal=journal
        )

    async def send_message(
        self,
        session_id: str | None,
        content: str,
        agent_id: str,
        *,
        timeout: Duration = 300.0,
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a message in a session, or in a new one if it is None; returns the answer.

        A text is a ChatAnswer, which is a str with `.get("content")` and `.get("session_id")`. A
        mapping has these two keys as well.

        Messages of one session are answered one at a time, in order. Raises AgentError if the
        agent fails or times out, or if the session belongs to another agent. Cancelling the call
        cancels the work.
        """
        if not isinstance(content, str):
            raise InvalidOption(f"content is {content!r}; it must be text")
        limit = seconds(timeout, "timeout")
        if session_id is None:
            session = await self.sessions.create_session(agent_id)
        else:
            session = await self.sessions.get_session(session_id)
        check_owner(session, agent_id)
        engine, agent = self.sessions.engine, self.sessions.agent_of(session)
        runtime = await engine.open()
        task_id = message_id(runtime, session.session_id)
        message = AgentMessage(agent, session, content, kwargs or {}, task_id, limit)
        (outcome,) = await engine.send(runtime, [message])
        if outcome.succeeded:
            return chat_answer(outcome.result, session)
        late = f"no answer within {limit:g} s" if outcome.status is State.TIMED_OUT else ""
        raise AgentError(
            f"agent {agent_id!r}: {late or outcome.reason}", agent_id
        ) from outcome.exception

    async def shutdown(self, timeout: Duration = 30.0) -> list[str]:
        """Cancel running work and end; returns the agents that did not stop. Idempotent."""
        return await self.sessions.shutdown(timeout)

    async def __aenter__(self) -> Self:
        await self.sessions.__aenter__()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self.sessions.__aexit__(kind, error, traceback)

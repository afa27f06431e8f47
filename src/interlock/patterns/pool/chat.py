"""`SessionManager` and `ChatEngine`: to talk to one agent, without a pool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from interlock.errors import AgentError, InvalidOption
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Breaker
from interlock.model.outcome import State
from interlock.patterns.pool.engine import Engine, Options
from interlock.patterns.pool.engine_config import AgentFactory, EngineConfig
from interlock.patterns.pool.member import Member, Question
from interlock.runtime.ports import Ports
from interlock.runtime.runtime import Runtime
from interlock.runtime.session import Session


class SessionManager:
    """Sessions that outlive a program as far as their journal does.

    The options are those of `AgentPool`. It can be used as it is, from the first call until
    `shutdown()`; `async with` shuts it down.
    """

    def __init__(
        self,
        config: EngineConfig | None = None,
        *,
        max_concurrent: int = 5,
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
        self._members: dict[str, Member] = {}
        """By session: two sessions of one agent may have different models."""

    async def create_session(
        self,
        agent_id: str,
        session_type: str = "chat",
        model: str | None = None,
        system_prompt: str | None = None,
        *,
        session_id: str | None = None,
    ) -> Session:
        """A new session of an agent; what is left out comes from the configuration."""
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
        """A session by its name; AgentError if there is none."""
        found = self.engine.sessions.find(await self.engine.open(), session_id)
        if found is None:
            raise AgentError(f"there is no session {session_id!r}; make it with create_session()")
        return found

    async def list_sessions(self, agent_id: str | None = None) -> list[Session]:
        """All sessions of the journal, or those of one agent."""
        found = self.engine.sessions.all(await self.engine.open())
        return [each for each in found if agent_id in (None, each.agent_id)]

    def member(self, session: Session) -> Member:
        """The agent of a session, for whoever talks to it: one for all of them."""
        member = self._members.get(session.session_id)
        if member is None:
            about = {"model": session.model, "system_prompt": session.system_prompt}
            given = {"agent_id": session.agent_id, **about}
            entry = self.engine.maker.entry(given, f"session {session.session_id!r}")
            member = self._members[session.session_id] = Member(entry)
        return member

    @property
    def runtime(self) -> Runtime:
        """The Runtime, from the first call until the shutdown; messages are `session#1` there."""
        return self.engine.runtime

    async def shutdown(self, timeout: Duration = 30.0) -> list[str]:
        """Cancel what runs and end; the agents that would not stop. Twice is fine."""
        return await self.engine.close(seconds(timeout, "timeout"))

    async def __aenter__(self) -> Self:
        await self.engine.open()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self.engine.close(cancel=error is not None)


class ChatEngine:
    """Sends messages to agents, each in one of its sessions.

    Without `sessions` it has a SessionManager of its own, made from the other options.
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
        session_id: str,
        content: str,
        agent_id: str,
        *,
        timeout: Duration = 300.0,
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Say something in a session; what the agent answers.

        Messages of one session are answered one at a time, in their order. Raises AgentError if
        the agent fails, runs out of time, or the session is another agent's. Cancelling it cancels
        the work.
        """
        if not isinstance(content, str):
            raise InvalidOption(f"content is {content!r}; it is text")
        limit = seconds(timeout, "timeout")
        session = await self.sessions.get_session(session_id)
        if session.agent_id != agent_id:
            raise AgentError(
                f"session {session_id!r} belongs to agent {session.agent_id!r}, not {agent_id!r}",
                agent_id,
            )
        engine, member = self.sessions.engine, self.sessions.member(session)
        name = engine.names.message(session_id)
        question = Question(member, session, content, kwargs or {}, name, limit)
        (outcome,) = await engine.ask(await engine.open(), [question])
        if outcome.succeeded:
            return outcome.result
        refused = engine.outages.turned_away(outcome.task_id)
        late = f"no answer within {limit:g} s" if outcome.status is State.TIMED_OUT else ""
        raise AgentError(
            f"agent {agent_id!r}: {refused or late or outcome.reason}", agent_id
        ) from outcome.exception

    async def shutdown(self, timeout: Duration = 30.0) -> list[str]:
        """Cancel what runs and end; the agents that would not stop. Twice is fine."""
        return await self.sessions.shutdown(timeout)

    async def __aenter__(self) -> Self:
        await self.sessions.__aenter__()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self.sessions.__aexit__(kind, error, traceback)

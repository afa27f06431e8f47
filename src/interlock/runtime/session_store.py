"""Sessions in the records of a journal: which agent each belongs to, and its exchanges.

A session outlives the run, and with a journal the program. An exchange is stored by the attempt
that had it, before the outcome of its task is. So a crash in between leaves an exchange whose task
runs again: `enter` takes it back, and it is stored once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from interlock.errors import AgentError, DuplicateId
from interlock.model.claim import Claim, uses
from interlock.runtime.runtime import Runtime
from interlock.runtime.session import Message, Session

_HEADERS = "sessions"
_ABOUT = ("agent_id", "session_type", "model", "system_prompt")


@lru_cache(maxsize=1024)
def claim_on(session_id: str) -> Claim:
    """A message has its session exclusively."""
    return uses(f"session {session_id}", exclusive=True)


class _StoredSession:
    """A session, and where its next exchange goes."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.exchanges = 0
        self.last = ""
        """The task of the last exchange, with its run."""


class SessionStore:
    """The sessions of one journal: read from it once, and written through."""

    def __init__(self) -> None:
        self._cache: dict[str, _StoredSession] = {}

    def find(self, runtime: Runtime, session_id: str) -> Session | None:
        """A session by its id; None if there is none."""
        stored = self._stored(runtime, session_id)
        return None if stored is None else stored.session

    def all(self, runtime: Runtime) -> list[Session]:
        """Every session of the journal."""
        names = [name for name, _ in runtime.records(_HEADERS).items()]
        return [found for name in names if (found := self.find(runtime, name)) is not None]

    async def create(self, runtime: Runtime, session: Session) -> Session:
        """Store a new session."""
        name = session.session_id
        if self.find(runtime, name) is not None:
            raise DuplicateId(f"session {name!r} already exists")
        self._cache[name] = _StoredSession(session)  # at once, so that the id is taken
        about = {each: getattr(session, each) for each in _ABOUT}
        try:
            await runtime.records(_HEADERS).put(name, about)
        except BaseException:
            self._cache.pop(name, None)
            raise
        return session

    async def of_agent(self, runtime: Runtime, session: Session) -> Session:
        """That session, found or created; AgentError if it belongs to another agent."""
        found = self.find(runtime, session.session_id)
        if found is None:
            return await self.create(runtime, session)
        check_owner(found, session.agent_id)
        return found

    async def delete(self, runtime: Runtime, session_id: str) -> None:
        """Delete a session with its exchanges."""
        exchanges = runtime.records(_exchanges_of(session_id))
        for key in [key for key, _ in exchanges.items()]:
            await exchanges.delete(key)
        await runtime.records(_HEADERS).delete(session_id)
        self._cache.pop(session_id, None)

    def enter(self, runtime: Runtime, session_id: str, task_id: str) -> Session:
        """The session for a task. If its exchange was stored before a crash, that is undone."""
        stored = self._stored(runtime, session_id)
        if stored is None:
            raise AgentError(f"session {session_id!r} no longer exists")
        if stored.last == _name(runtime, task_id):
            stored.session.take_back(2)
            stored.exchanges -= 1
            stored.last = ""
        return stored.session

    async def add_exchange(
        self, runtime: Runtime, session: Session, task_id: str, prompt: str, output: Any
    ) -> None:
        """Store a prompt and its answer, both or neither."""
        stored = self._cache[session.session_id]
        reply = text_of(output)
        name = _name(runtime, task_id)
        exchanges = runtime.records(_exchanges_of(session.session_id))
        await exchanges.put(f"{stored.exchanges:08}", (name, prompt, reply))
        stored.exchanges += 1
        stored.last = name
        session.add(Message("user", prompt), Message("assistant", reply))

    def _stored(self, runtime: Runtime, session_id: str) -> _StoredSession | None:
        stored = self._cache.get(session_id)
        if stored is None:
            about = runtime.records(_HEADERS).get(session_id)
            if about is None:
                return None
            stored = self._cache[session_id] = _StoredSession(Session(session_id, **about))
            for _, (name, prompt, reply) in runtime.records(_exchanges_of(session_id)).items():
                stored.session.add(Message("user", prompt), Message("assistant", reply))
                stored.exchanges += 1
                stored.last = name
        return stored


def check_owner(session: Session, agent_id: str) -> None:
    """Raise AgentError if a session does not belong to an agent."""
    if session.agent_id != agent_id:
        name, owner = session.session_id, session.agent_id
        raise AgentError(f"session {name!r} belongs to agent {owner!r}, not {agent_id!r}", agent_id)


def text_of(output: Any) -> str:
    """An answer as text: as it is stored, and shown to other agents."""
    return "" if output is None else str(output)


def _exchanges_of(session_id: str) -> str:
    return f"session {session_id}"


def _name(runtime: Runtime, task_id: str) -> str:
    return f"{runtime.run_id}/{task_id}"

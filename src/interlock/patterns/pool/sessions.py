"""Sessions in the records of a journal: who they belong to, and what was said in them."""

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
    """Whoever speaks in a session has it alone."""
    return uses(f"session {session_id}", exclusive=True)


class _Kept:
    """A session, and where the next exchange goes."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.exchanges = 0
        self.last = ""
        """The task of the last exchange."""


class Sessions:
    """Those of one journal. They are read from there once, and written through."""

    def __init__(self) -> None:
        self._known: dict[str, _Kept] = {}

    def find(self, runtime: Runtime, session_id: str) -> Session | None:
        """A session by its name, if there is one."""
        kept = self._kept(runtime, session_id)
        return None if kept is None else kept.session

    def all(self, runtime: Runtime) -> list[Session]:
        """Every session of the journal."""
        names = [name for name, _ in runtime.records(_HEADERS).items()]
        return [found for name in names if (found := self.find(runtime, name)) is not None]

    async def create(self, runtime: Runtime, session: Session) -> Session:
        """Keep a new session."""
        name = session.session_id
        if self.find(runtime, name) is not None:
            raise DuplicateId(f"there is a session {name!r} already")
        self._known[name] = _Kept(session)  # at once: the name is taken while it is being written
        about = {each: getattr(session, each) for each in _ABOUT}
        try:
            await runtime.records(_HEADERS).put(name, about)
        except BaseException:
            self._known.pop(name, None)
            raise
        return session

    async def of_agent(self, runtime: Runtime, session: Session) -> Session:
        """That session, new or from before; AgentError if it is another agent's."""
        found = self.find(runtime, session.session_id)
        if found is None:
            return await self.create(runtime, session)
        if found.agent_id != session.agent_id:
            raise AgentError(
                f"session {session.session_id!r} belongs to agent {found.agent_id!r}, and not to "
                f"{session.agent_id!r}",
                session.agent_id,
            )
        return found

    async def forget(self, runtime: Runtime, session_id: str) -> None:
        """Delete a session with all that was said in it."""
        said = runtime.records(_said_in(session_id))
        for key in [key for key, _ in said.items()]:
            await said.delete(key)
        await runtime.records(_HEADERS).delete(session_id)
        self._known.pop(session_id, None)

    def entered(self, runtime: Runtime, session_id: str, task_id: str) -> Session:
        """A task is let in. What it said before it was cut off is taken back: it says it again."""
        kept = self._kept(runtime, session_id)
        if kept is None:
            raise AgentError(f"there is no session {session_id!r} any more")
        if kept.last == _name(runtime, task_id):
            kept.session.take_back(2)
            kept.exchanges -= 1
            kept.last = ""
        return kept.session

    async def said(
        self, runtime: Runtime, session: Session, task_id: str, prompt: str, output: Any
    ) -> None:
        """Keep a message and its answer, both or none."""
        kept = self._known[session.session_id]
        reply = text_of(output)
        name = _name(runtime, task_id)
        said = runtime.records(_said_in(session.session_id))
        await said.put(f"{kept.exchanges:08}", (name, prompt, reply))
        kept.exchanges += 1
        kept.last = name
        session.add(Message("user", prompt), Message("assistant", reply))

    def _kept(self, runtime: Runtime, session_id: str) -> _Kept | None:
        kept = self._known.get(session_id)
        if kept is None:
            about = runtime.records(_HEADERS).get(session_id)
            if about is None:
                return None
            kept = self._known[session_id] = _Kept(Session(session_id, **about))
            for _, (name, prompt, reply) in runtime.records(_said_in(session_id)).items():
                kept.session.add(Message("user", prompt), Message("assistant", reply))
                kept.exchanges += 1
                kept.last = name
        return kept


def text_of(output: Any) -> str:
    """An answer as it is remembered, and told to others."""
    return "" if output is None else str(output)


def _said_in(session_id: str) -> str:
    return f"session {session_id}"


def _name(runtime: Runtime, task_id: str) -> str:
    return f"{runtime.run_id}/{task_id}"

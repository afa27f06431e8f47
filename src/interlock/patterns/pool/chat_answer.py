"""`ChatAnswer`: the answer to a message, as text that can also be read like a dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.runtime.session import Session
from interlock.runtime.session_store import text_of


class ChatAnswer(str):
    """The text of an answer; `get()` also returns `content`, `session_id` and `agent_id`."""

    __slots__ = ("agent_id", "session_id")

    agent_id: str
    session_id: str

    def get(self, name: str, default: Any = None) -> Any:
        """Return a part of the answer by its name, as from a dict."""
        if name == "content":
            return str(self)
        return getattr(self, name) if name in ChatAnswer.__slots__ else default


def chat_answer(output: Any, session: Session) -> Any:
    """Convert what an agent returned: text and mappings get a content and a session id.

    Other objects are returned as they are.
    """
    if isinstance(output, str):
        answer = ChatAnswer(output)
        answer.agent_id, answer.session_id = session.agent_id, session.session_id
        return answer
    if isinstance(output, Mapping):
        return {"content": text_of(output), "session_id": session.session_id, **output}
    return output

"""What an agent remembers: a conversation with a name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Message(NamedTuple):
    """Something that was said in a session; `role` is `user` or `assistant`."""

    role: str
    content: str


class Session:
    """A conversation; `messages` is what was said in it before, in order.

    It belongs to one agent, and whoever keeps sessions lets one task at a time into each of them.
    """

    __slots__ = (
        "_messages",
        "agent_id",
        "model",
        "session_id",
        "session_type",
        "system_prompt",
    )

    def __init__(
        self,
        session_id: str,
        messages: Iterable[Message] = (),
        *,
        agent_id: str = "",
        session_type: str = "",
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> None:
        self.session_id = session_id
        """Its name, by which other programs can know it too."""
        self.agent_id = agent_id
        self.session_type = session_type
        self.model = model
        self.system_prompt = system_prompt
        self._messages = list(messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said so far, oldest first."""
        return tuple(self._messages)

    def add(self, *messages: Message) -> None:
        """For whoever keeps the session: this was said."""
        self._messages += messages

    def take_back(self, count: int) -> None:
        """For whoever keeps the session: the last so many messages were not said after all."""
        del self._messages[len(self._messages) - count :]

    def __str__(self) -> str:
        return self.session_id

    def __repr__(self) -> str:
        return f"<Session {self.session_id!r}, {len(self._messages)} messages>"

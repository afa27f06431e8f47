"""A named conversation that an agent continues from task to task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from interlock.model.stable_names import stable_name

_PARTS = frozenset(
    {"id", "session_id", "agent_id", "session_type", "model", "system_prompt", "messages"}
)


@stable_name("data.message")
class Message(NamedTuple):
    """A message in a session; `role` is `user` or `assistant`."""

    role: str
    content: str


class Session:
    """A conversation of one agent; `messages` are the earlier ones, in order.

    Its pool admits one task at a time to a session.
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
        """Its name, which other programs may use too."""
        self.agent_id = agent_id
        self.session_type = session_type
        self.model = model
        self.system_prompt = system_prompt
        self._messages = list(messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages so far, oldest first."""
        return tuple(self._messages)

    def __getitem__(self, name: str) -> Any:
        """The same parts by name, as of a dict; `id` is the session_id."""
        if name not in _PARTS:
            raise KeyError(name)
        return getattr(self, "session_id" if name == "id" else name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a part by its name, or the default."""
        return self[name] if name in _PARTS else default

    def add(self, *messages: Message) -> None:
        """For pools: append messages."""
        self._messages += messages

    def take_back(self, count: int) -> None:
        """For pools: remove the last messages, whose task did not succeed."""
        del self._messages[len(self._messages) - count :]

    def __str__(self) -> str:
        return self.session_id

    def __repr__(self) -> str:
        return f"<Session {self.session_id!r}, {len(self._messages)} messages>"

"""An agent of a pool, and a message to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.engine_config import Entry
from interlock.runtime.session import Session


class Member:
    """An agent of an engine, from the first mention of its id."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.agent_id: str = entry["agent_id"]
        self.model: str | None = entry["model"]
        self.session: Session | None = None
        """The one for messages that name none."""
        self.call: Callable[..., Awaitable[Any]] | None = None
        """None before it is made."""
        self.spawn = ""
        """The task that makes it."""
        self.since: float | None = None
        """When it was spawned, in seconds since 1970."""
        self.failures = 0
        """In a row."""
        self.answer: Callable[..., Awaitable[Any]] | None = None
        """The agent of the tasks by which it is asked."""

    def made(self, call: Callable[..., Awaitable[Any]]) -> None:
        """Here it is."""
        self.call = call

    def settled(self, outcome: Outcome[Any]) -> None:
        """One of its messages has its outcome. What was cancelled says nothing about it."""
        if outcome.succeeded:
            self.failures = 0
        elif outcome.status is not State.CANCELLED:
            self.failures += 1


class Question(NamedTuple):
    """A message to an agent, looked through."""

    member: Member
    session: Session
    prompt: str
    kwargs: Mapping[str, Any]
    name: str
    timeout: float | None = None
    deadline: float | datetime | None = None
    aside: bool = False

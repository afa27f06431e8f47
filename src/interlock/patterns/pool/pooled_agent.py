"""An agent of an engine, and a message to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from interlock.model.outcome import Outcome, State
from interlock.patterns.pool.engine_config import Entry
from interlock.runtime.session import Session


class PooledAgent:
    """An agent of an engine, from the first mention of its id."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.agent_id: str = entry["agent_id"]
        self.model: str | None = entry["model"]
        self.session: Session | None = None
        """The session of messages that name none."""
        self.call: Callable[..., Awaitable[Any]] | None = None
        """How to call it; None before it is made."""
        self.spawn_id = ""
        """The task that makes it."""
        self.since: float | None = None
        """When it was spawned, in seconds since 1970."""
        self.failures = 0
        """Consecutive failures."""
        self.answer: Callable[..., Awaitable[Any]] | None = None
        """The agent of the tasks that carry its messages."""

    def made(self, call: Callable[..., Awaitable[Any]]) -> None:
        """Store how to call it."""
        self.call = call

    def settled(self, outcome: Outcome[Any]) -> None:
        """Count the outcome of a message. A cancellation is not evidence about the agent."""
        if outcome.succeeded:
            self.failures = 0
        elif outcome.status is not State.CANCELLED:
            self.failures += 1


class AgentMessage(NamedTuple):
    """A validated message to an agent."""

    to: PooledAgent
    session: Session
    prompt: str
    kwargs: Mapping[str, Any]
    task_id: str
    timeout: float | None = None
    deadline: float | datetime | None = None
    aside: bool = False
    """Whether its session does not keep it; it is then answered with text."""

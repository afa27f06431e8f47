"""How tasks and attempts stand and how they end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a task is in its life. The last six are ends; exactly one of them is reached."""

    BLOCKED = "blocked"
    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    NEEDS_YOU = "needs_you"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    CONFLICTED = "conflicted"

    @property
    def is_end(self) -> bool:
        """Whether a task in this state has its outcome."""
        return self in _ENDS


_ENDS = frozenset(
    {
        State.SUCCEEDED,
        State.FAILED,
        State.TIMED_OUT,
        State.CANCELLED,
        State.SKIPPED,
        State.CONFLICTED,
    }
)


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """What went wrong, in a form that survives a restart."""

    type: str
    message: str
    traceback: str = ""
    retryable: bool = True

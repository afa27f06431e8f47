"""The states of tasks, and how tasks end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from interlock.model.duration import span
from interlock.model.usage import NO_USAGE, Usage

T_co = TypeVar("T_co", covariant=True)


class State(StrEnum):
    """The state of a task. The last six are final; a task reaches exactly one of them."""

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
    def phrase(self) -> str:
        """Return the predicate for a task in this state: `is waiting`, `needs you`, `succeeded`."""
        if self is State.NEEDS_YOU:
            return "needs you"
        words = self.value.replace("_", " ")
        return words if self.is_end else f"is {words}"

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


EndedBy = Literal["", "task_deadline", "run_deadline"]
"""Which deadline ended a task, for programs; empty if none did. `cause` says it in words."""


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """What went wrong, in a form that survives a restart."""

    type: str
    message: str
    traceback: str = ""
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T_co]):
    """How a task ended: with a `result` if it succeeded, otherwise usually with an `error`.

    `error` survives a restart; `exception` is the live exception, in the process in which it was
    raised. `cause` says what ended a task that did not end by itself: the dependency it was skipped
    for, or why it was cancelled. `ended_by` says which deadline ended it, if one did.
    """

    task_id: str
    status: State
    result: T_co | None = None
    error: ErrorRecord | None = None
    attempts: int = 0
    started_at: datetime | None = None
    """When its first attempt started; None if none did."""
    ended_at: datetime | None = None
    duration: float = 0.0
    """Seconds from the start of its first attempt to its end."""
    usage: Usage = NO_USAGE
    changed_paths: tuple[str, ...] = ()
    cause: str = ""
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    ended_by: EndedBy = ""

    def __str__(self) -> str:
        tries = "" if self.attempts <= 1 else f", attempt {self.attempts}"
        took = f" {'in' if self.succeeded else 'after'} {span(self.duration)}"
        took = "" if self.started_at is None else took
        why = f": {self.reason}" if self.reason else ""
        return f"{self.task_id} {self.status}{took}{tries}{why}"

    @property
    def succeeded(self) -> bool:
        """Whether it ended as `succeeded`."""
        return self.status is State.SUCCEEDED

    @property
    def reason(self) -> str:
        """Why it did not succeed, in one line; empty if it did."""
        if self.error is not None:
            kind, said = self.error.type, self.error.message
            return f"{kind}: {said}" if said else kind
        if self.status is State.SKIPPED:
            return f"{self.cause!r} did not succeed"
        return self.cause

"""What happens in a run, as others see it."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What an event tells of. The structured log uses these words as its messages."""

    RUN_STARTED = "run_started"
    RUN_ENDED = "run_ended"
    SUBMITTED = "submitted"
    BLOCKED = "blocked"
    WAITING = "waiting"
    STARTED = "started"
    LAUNCHED = "launched"
    """An attempt that runs in processes of its own has one: which, and where its output is."""
    RETRYING = "retrying"
    NEEDS_YOU = "needs_you"
    RUNNING = "running"
    """A task that needed you goes on."""
    STOP_REQUESTED = "stop_requested"
    ENDED = "ended"
    """An attempt reported how it ended. What becomes of its task: `retrying` or `settled`."""
    ATTEMPT_EXITED = "attempt_exited"
    """Nothing is left of an attempt that had been told to stop: its claims are free."""
    SETTLED = "settled"
    """A task has its outcome."""
    GRANTED = "granted"
    """A wait in mid-flight is over."""
    DENIED = "denied"
    REFUSED = "refused"
    COMMAND = "command"
    """A request from outside: to cancel, pause, answer, change a limit, ..."""
    TICKED = "ticked"
    """A time came that the kernel had waited for."""
    INTERRUPTED = "interrupted"
    """An attempt was cut off when the coordinator ended."""
    REUSED = "reused"
    """A task that an earlier run has done is not run again."""
    REPORTED = "reported"
    LOGGED = "logged"
    USED = "used"
    MISSED = "missed"
    """Events that were dropped before they could be read; only a slow reader sees this one."""


COMMAND_NAMES: dict[type, str] = {}
"""The name of each command, by the class of its data. The runtime fills it in when it is loaded:
the classes are the kernel's, which the model does not know."""


class Event(NamedTuple):
    """One thing that happened. `data` has the details, by kind; `fields` has them by name."""

    number: int
    """Counts from 1 within a run, without gaps."""
    at: float
    """Seconds since 1970."""
    kind: Kind
    task_id: str
    """Empty where the event is about the run."""
    data: Any = None

    @property
    def time(self) -> datetime:
        """When it happened."""
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def fields(self) -> dict[str, Any]:
        """The details by name."""
        data = self.data
        if data is None:
            return {}
        if isinstance(data, dict):
            return dict(data)
        names: tuple[str, ...] = getattr(data, "_fields", ()) or data.__slots__
        fields = {name: getattr(data, name) for name in names if not name.startswith("_")}
        if self.kind is Kind.COMMAND:
            return {"command": COMMAND_NAMES.get(type(data), ""), **fields}
        return fields

"""The events of a run: what happened, in order."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from interlock.model.stable_names import stable_name


class Kind(StrEnum):
    """The kind of an event. The structured log uses these words as its messages."""

    RUN_STARTED = "run_started"
    RUN_ENDED = "run_ended"
    SUBMITTED = "submitted"
    BLOCKED = "blocked"
    WAITING = "waiting"
    STARTED = "started"
    LAUNCHED = "launched"
    """An attempt has a process of its own: which one, and where its output is."""
    RETRYING = "retrying"
    NEEDS_YOU = "needs_you"
    RUNNING = "running"
    """A task that needed you continues."""
    STOP_REQUESTED = "stop_requested"
    ENDED = "ended"
    """An attempt reported how it ended. What becomes of its task: `retrying` or `settled`."""
    ATTEMPT_EXITED = "attempt_exited"
    """Every thread and process of a stopped attempt has ended: its claims are released."""
    SETTLED = "settled"
    """A task has its outcome."""
    GRANTED = "granted"
    """A wait of a running attempt is over: it was given what it waited for."""
    DENIED = "denied"
    REFUSED = "refused"
    COMMAND = "command"
    """A request from outside: to cancel, pause, answer, change a limit, ..."""
    TICKED = "ticked"
    """A time has come that the kernel waited for, such as the end of a backoff."""
    INTERRUPTED = "interrupted"
    """An attempt was cut off: its coordinator ended before it did."""
    REUSED = "reused"
    """A task has the outcome of an earlier run, and is not run again."""
    REPORTED = "reported"
    LOGGED = "logged"
    USED = "used"
    MISSED = "missed"
    """Events were dropped before they could be read. Only a slow reader sees this one."""


COMMAND_NAMES: dict[type, str] = {}
"""The name of each command, by the class of its data. The runtime fills it in when it is loaded:
the classes are the kernel's, which the model does not know."""


@stable_name("data.event")
class Event(NamedTuple):
    """One event. `data` has the details, a record for most kinds; `fields` has them by name."""

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

"""Events of a run as lines of text and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from interlock.model.event import Event
from interlock.model.outcome import Outcome
from interlock.model.task import Task

_LONGEST = 200
_INTERNAL = frozenset({"task_id", "token", "grant", "request", "chance", "gone", "kernel", "epoch"})
"""Fields that only `--json` shows."""


def line_of(event: Event) -> str:
    """Number, time, kind, task and details of an event."""
    at = event.time.astimezone().strftime("%H:%M:%S.%f")[:-3]
    return f"{event.number:>6}  {at}  {event.kind:<14}  {event.task_id:<20}  {_details(event)}"


def event_json(event: Event) -> dict[str, Any]:
    """An event as JSON, under names that do not change; `data` depends on the kind."""
    return {
        "number": event.number,
        "at": event.at,
        "kind": event.kind.value,
        "task_id": event.task_id,
        "data": _plain(event.fields),
    }


def _details(event: Event) -> str:
    if isinstance(event.data, Task):
        return ", ".join(map(str, event.data.claims))
    if isinstance(event.data, Outcome):
        return f"{event.data.status} {event.data.reason}".rstrip()[:_LONGEST]
    fields = {name: value for name, value in event.fields.items() if _matters(name, value)}
    return " ".join(f"{name}={_plain(value)}" for name, value in fields.items())[:_LONGEST]


def _matters(name: str, value: Any) -> bool:
    return name not in _INTERNAL and value not in (None, "", 0.0, (), [])


def _plain(value: Any) -> Any:
    """The value in terms of JSON."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names if name != "exception"}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return str(value)

"""Stories as text: short enough to read, complete enough to understand."""

from __future__ import annotations

from typing import Any

from interlock.model.claim import Claim
from interlock.model.limits import Retry
from interlock.model.outcome import ErrorRecord
from interlock.model.task import Task
from tests.simulation.target import Judged


def narrate(judged: Judged[Any]) -> str:
    """A story, what happened in it, and which rules were broken."""
    end = judged.violations or ["no rule was broken"]
    return "\n".join([*judged.heading(), *judged.lines(), *end])


def brief(value: object) -> str:
    """A record with only what differs from its defaults."""
    match value:
        case Task():
            return _task(value)
        case Claim() | str():
            return str(value)
        case ErrorRecord():
            return "" if value.retryable else "not retryable"
        case Retry():
            return f"{value.attempts} attempts, backoff {value.backoff:g}"
        case tuple() if hasattr(value, "_fields"):
            return _record(value)
        case tuple() | list():
            return "[" + ", ".join(map(brief, value)) + "]"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _record(record: Any) -> str:
    defaults = record._field_defaults
    fields = zip(record._fields, record, strict=True)
    said = [_field(n, v) for n, v in fields if n not in defaults or v != defaults[n]]
    return f"{type(record).__name__}({', '.join(s for s in said if s)})"


def _field(name: str, value: object) -> str:
    if value is None or value == "":
        return ""
    text = brief(value)
    named = text and name not in ("task_id", "tasks", "status", "state", "claims")
    return f"{name}={text}" if named else text


def _task(task: Task) -> str:
    said = [", ".join(map(str, task.claims)) or "no claims"]
    said += [f"after {', '.join(task.after)}"] if task.after else []
    said += [f"priority {task.priority}"] if task.priority else []
    said += [f"timeout {task.timeout:g}"] if task.timeout is not None else []
    said += [f"deadline {task.deadline:g}"] if task.deadline is not None else []
    said += [brief(task.retry)] if task.retry.attempts > 1 else []
    return f"{task.id}: {'; '.join(said)}"

"""The JSON form of outcomes: everything but the live exception."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from interlock.journal.schema.names import RECORDS
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.usage import NO_USAGE, Usage

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Walk

_TAG = RECORDS["outcome"].tag


def encode(walk: Walk, outcome: Outcome[Any]) -> Any:
    """Written by hand, for speed. A result is stored as a whole or not at all."""
    of: dict[str, Any] = {
        "task_id": outcome.task_id,
        "status": outcome.status._value_,
        "attempts": outcome.attempts,
        "duration": outcome.duration,
    }
    if outcome.result is not None:
        of["result"] = walk.whole(outcome.result, "result")
    if outcome.error is not None:
        error = outcome.error
        of["error"] = [error.type, error.message, error.traceback, error.retryable]
    if outcome.started_at is not None:
        of["started_at"] = outcome.started_at.isoformat()
    if outcome.ended_at is not None:
        of["ended_at"] = outcome.ended_at.isoformat()
    if outcome.usage != NO_USAGE:
        of["usage"] = walk.items(outcome.usage)
    if outcome.changed_paths:
        of["changed_paths"] = list(outcome.changed_paths)
    if outcome.cause:
        of["cause"] = outcome.cause
    if outcome.ended_by:
        of["ended_by"] = outcome.ended_by
    return {"$": _TAG, "of": of}


def restored(of: dict[str, Any]) -> Outcome[Any]:
    """Read an outcome."""
    fields = dict(of)
    fields["status"] = State(of["status"])
    for name in ("started_at", "ended_at"):
        if name in of:
            fields[name] = datetime.fromisoformat(of[name])
    if "error" in of:
        fields["error"] = ErrorRecord(*of["error"])
    if "usage" in of:
        fields["usage"] = Usage(*of["usage"])
    if "changed_paths" in of:
        fields["changed_paths"] = tuple(of["changed_paths"])
    return Outcome(**fields)

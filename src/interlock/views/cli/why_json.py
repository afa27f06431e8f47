"""An explanation as JSON: what `interlock why` says, under names that do not change."""

from __future__ import annotations

import math
from dataclasses import Field, fields
from typing import Any

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.claim import Claim
from interlock.model.load import Load
from interlock.model.why import Explanation, Reason


def explanation_json(explanation: Explanation, task: TaskFacts | None = None) -> dict[str, Any]:
    """The explanation as JSON. Times are seconds since the run began, as in the explanation.

    `task` says how the task ended, if it has.
    """
    return {
        "task_id": explanation.task_id,
        "state": str(explanation.state),
        "at": explanation.at,
        "since": explanation.since,
        "reasons": [reason_json(reason, explanation.at) for reason in explanation.reasons],
        "clears_at": _plain(explanation.clears_at),
        "suggestions": list(explanation.suggestions),
        "error": "" if task is None else task.error,
        "error_type": "" if task is None else task.error_type,
        "cause": "" if task is None else task.cause,
        "log": "" if task is None else task.log,
    }


def reason_json(reason: Reason, now: float) -> dict[str, Any]:
    """One reason: its kind, the sentence, and every field under its name in the model."""
    values = {each.name: _field_json(each, getattr(reason, each.name)) for each in fields(reason)}
    return {"kind": reason.kind, "text": reason.describe(now), **values}


def _field_json(field: Field[Any], value: Any) -> Any:
    """The value of a field. Tuples become objects whose names the field's metadata gives."""
    names = field.metadata.get("items")
    if names is not None:
        return [dict(zip(names, each, strict=True)) for each in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Claim):
        return {
            "text": str(value),
            "mode": str(value.mode),
            "resource": value.resource,
            "amount": value.amount,
        }
    if isinstance(value, Load):
        return {"cpu": value.cpu, "memory": value.memory}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no infinity
    return value

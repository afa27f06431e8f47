"""An explanation as JSON: what `why` says, under names that stay."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.claim import Claim
from interlock.model.load import Load
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker
from interlock.model.why import (
    Backoff,
    Draining,
    Explanation,
    HeldClaim,
    LackingCapacity,
    NotCarriedOut,
    Paused,
    Reason,
    ReservedClaim,
    SpentRate,
    StillAlive,
    StuckJournal,
    UnansweredQuestion,
    UnfinishedDependency,
    UnfinishedTask,
)

KINDS: dict[type[Reason], str] = {
    UnfinishedDependency: "unfinished_dependency",
    HeldClaim: "held_claim",
    ReservedClaim: "reserved_claim",
    LackingCapacity: "lacking_capacity",
    SpentRate: "spent_rate",
    OpenBreaker: "open_breaker",
    ClosedGate: "closed_gate",
    LoadedMachine: "loaded_machine",
    Paused: "paused",
    Draining: "draining",
    Backoff: "backoff",
    StillAlive: "still_alive",
    UnansweredQuestion: "unanswered_question",
    UnfinishedTask: "unfinished_task",
    StuckJournal: "stuck_journal",
    NotCarriedOut: "not_carried_out",
}
"""What each kind of reason is called."""


def as_json(explanation: Explanation, task: TaskFacts | None = None) -> dict[str, Any]:
    """The explanation as JSON. Times are seconds since the run began, as in the explanation.

    `task` says how it ended, if it has.
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
    found = {each.name: _plain(getattr(reason, each.name)) for each in fields(reason)}
    if isinstance(reason, LackingCapacity):
        found["holders"] = [
            {"task_id": task_id, "amount": amount, "since": since}
            for task_id, amount, since in reason.holders
        ]
    return {"kind": KINDS[type(reason)], "text": reason.said(now), **found}


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
        return None  # JSON has no word for it
    return value

"""The facts of a run as JSON, under names that do not change."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.progress import Progress


def run_json(facts: RunFacts) -> dict[str, Any]:
    """A run with all its tasks. Times are seconds since 1970, durations are seconds."""
    return {
        "run_id": facts.run_id,
        "plan": facts.plan,
        "at": facts.at,
        "started_at": facts.started_at,
        "ended_at": facts.ended_at,
        "duration": facts.duration,
        "active": facts.active,
        "paused": facts.paused,
        "draining": facts.draining,
        "slots": facts.slots,
        "last_event": facts.last,
        "progress": progress_json(facts.progress),
        "one_by_one": facts.one_by_one,
        "saved": facts.saved,
        "cost": facts.cost,
        "tokens": sum(task.tokens for task in facts.tasks),
        "tasks": [task_json(task) for task in facts.tasks],
    }


def progress_json(progress: Progress) -> dict[str, int]:
    """How many tasks are in each state; the states add up to `total`."""
    counts = {each.name: getattr(progress, each.name) for each in fields(progress)}
    return {**counts, "ended": progress.ended, "total": progress.total}


def task_json(task: TaskFacts) -> dict[str, Any]:
    """A task. What is unknown is null or an empty string."""
    return {
        "id": task.id,
        "state": str(task.state),
        "since": task.since,
        "agent": task.agent,
        "prompt": task.prompt,
        "claims": list(task.claims),
        "after": list(task.after),
        "priority": task.priority,
        "attempt": task.attempt,
        "attempts": task.attempts,
        "submitted_at": task.submitted_at,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "duration": task.duration,
        "estimate": task.estimate,
        "fraction": task.fraction,
        "message": task.message,
        "tokens": task.tokens,
        "cost": task.cost,
        "error": task.error,
        "error_type": task.error_type,
        "cause": task.cause,
        "ended_by": task.ended_by,
        "retry_of": task.retry_of,
        "question": task.question,
        "stopping": task.stopping,
        "output": task.output,
        "log": task.log,
    }

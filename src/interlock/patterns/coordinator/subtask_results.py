"""The result of a subtask and the record of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.model.outcome import Outcome, State
from interlock.patterns.coordinator.config import Strategy
from interlock.patterns.coordinator.subtask import Id, SubTask
from interlock.patterns.coordinator.subtask_groups import SubtaskGroup

STATUSES: Mapping[State, str] = {
    State.SUCCEEDED: "completed",
    State.FAILED: "failed",
    State.CONFLICTED: "failed",
    State.TIMED_OUT: "timeout",
    State.CANCELLED: "cancelled",
    State.SKIPPED: "skipped",
}


def result_of(
    subtask: SubTask, outcome: Outcome[Any], agent_id: str | None, cause: Id | None
) -> dict[str, Any]:
    """Return the result of a subtask; `cause` is the dependency that it was skipped for."""
    error = outcome.reason or None
    if outcome.status is State.SKIPPED and cause is not None:
        error = f"subtask {cause!r}, on which it depends, was not completed"
    return {
        "subtask_id": subtask.subtask_id,
        "status": STATUSES[outcome.status],
        "result": outcome.result,
        "error": error,
        "attempts": outcome.attempts,
        "duration_seconds": outcome.duration,
        "agent_id": agent_id,
    }


def record_of(
    parent_id: Any,
    group: SubtaskGroup,
    results: Sequence[dict[str, Any]],
    outcomes: Sequence[Outcome[Any]],
    strategy: Strategy,
    max_parallel: int,
) -> dict[str, Any]:
    """Return the record of a group whose subtasks have all ended.

    `speedup_factor` is the possible gain: the sum of the durations over the longest. `wall_speedup`
    is the real one: the sum over the elapsed time. If no time has passed, both are 1.
    """
    starts = [each.started_at for each in outcomes if each.started_at is not None]
    ends = [each.ended_at for each in outcomes if each.ended_at is not None]
    started, over = min(starts, default=None), max(ends, default=None)
    wall = 0.0 if started is None or over is None else (over - started).total_seconds()
    durations = {each["subtask_id"]: each["duration_seconds"] for each in results}
    total = sum(durations.values())
    failed = [each for each in results if each["status"] != "completed"]
    errors = {each["subtask_id"]: each["error"] or each["status"] for each in failed}
    num_agents = sum(each["attempts"] > 0 for each in results)
    return {
        "parent_task_id": parent_id,
        "group": group.number,
        "subtask_ids": [each["subtask_id"] for each in results],
        "num_agents": num_agents,
        "agent_ids": [each["agent_id"] for each in results if each["agent_id"] is not None],
        "max_concurrent_agents": min(num_agents, max_parallel),
        "success": not failed,
        "started_at": started,
        "ended_at": over,
        "agent_durations": durations,
        "total_duration_seconds": wall,
        "sequential_seconds": total,
        "speedup_factor": _ratio(total, max(durations.values(), default=0.0)),
        "wall_speedup": _ratio(total, wall),
        "failed_agents": list(errors),
        "errors": errors,
        "failure_reason": "; ".join(f"Subtask {name}: {said}" for name, said in errors.items())
        or None,
        "attempts": {each["subtask_id"]: each["attempts"] for each in results},
        "strategy": strategy,
    }


def attempt_data_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record for `log_parallel_attempt(task_id, attempt_data)`.

    It has the names that the original's state managers read in addition to ours.
    """
    return {
        **record,
        # Such a store requires both times, also for a group of which nothing was started.
        "started_at": record["started_at"] or record["ended_at"],
        "completed_at": record["ended_at"],
        "sequential_estimate_seconds": record["sequential_seconds"],
        "failed_agent_count": len(record["failed_agents"]),
        "parallelization_strategy": record["strategy"],
    }


def _ratio(total: float, part: float) -> float:
    return total / part if part > 0 else 1.0

"""Convert the outcome of a task in the Runtime into that of an agent in a group."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeAlias

from interlock.errors import EngineError
from interlock.model.outcome import Outcome, State
from interlock.patterns.executor.engine_call import Unsuccessful
from interlock.patterns.executor.events import (
    PARALLEL_AGENT_CANCELLED,
    PARALLEL_AGENT_COMPLETE,
    PARALLEL_AGENT_ERROR,
    event_ids,
    log_event,
)
from interlock.patterns.executor.models import (
    CANCELLED,
    REFUSED,
    TIMED_OUT,
    AgentAssignment,
    AgentOutcome,
    find_mismatch,
)


class RefusedByShutdown(EngineError):
    """The shutdown manager refused to let a task start."""


StoredOutcome: TypeAlias = tuple[Any, str | None]
"""What a journal keeps of an outcome: the result of a success, else the text of the error."""


def outcome_of(assignment: AgentAssignment, outcome: Outcome[Any]) -> AgentOutcome:
    """Convert an outcome for the caller of a group."""
    if isinstance(outcome.exception, Unsuccessful):
        return make_outcome(assignment, outcome.exception.result, None)
    if outcome.result is None:
        return make_outcome(assignment, None, _error(assignment, outcome))
    return make_outcome(assignment, outcome.result, None)


def to_stored(outcome: AgentOutcome) -> StoredOutcome:
    """Convert an outcome into what a journal keeps."""
    if outcome.is_success:
        return outcome.result, None
    return None, outcome.error or f"Unsuccessful: {outcome.termination_reason}"


def from_stored(assignment: AgentAssignment, stored: StoredOutcome) -> AgentOutcome:
    """Restore an outcome from what a journal kept."""
    return make_outcome(assignment, *stored)


def make_outcome(assignment: AgentAssignment, result: Any, error: str | None) -> AgentOutcome:
    """Make an outcome without validation by the model, which is slow for large groups."""
    task_id, agent_id = assignment.task_id, assignment.agent_id
    if result is not None and (mismatch := find_mismatch(result, task_id, agent_id)):
        # It was read from a journal, and the class it was written from is not loaded.
        result, error = None, f"EngineError: {mismatch}"
    return AgentOutcome.model_construct(
        task_id=task_id, agent_id=agent_id, result=result, error=error
    )


def is_fatal(error: BaseException) -> bool:
    """Whether an error endangers the whole process."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_fatal(each) for each in error.exceptions)
    return isinstance(error, (MemoryError, RecursionError))


def log_outcome(group_id: str, outcome: AgentOutcome, fatal: BaseException | None) -> None:
    """Log how an agent ended."""
    fields: dict[str, Any] = event_ids(group_id, outcome)
    if outcome.error is None:
        log_event(PARALLEL_AGENT_COMPLETE, success=outcome.is_success, **fields)
    elif outcome.error == CANCELLED:
        log_event(PARALLEL_AGENT_CANCELLED, **fields)
    else:
        level = None if fatal is None else logging.ERROR
        log_event(
            PARALLEL_AGENT_ERROR, level=level, caused_by=fatal, reason=outcome.error, **fields
        )


def _error(assignment: AgentAssignment, outcome: Outcome[Any]) -> str:
    # A task that the shutdown manager cancelled fails with that CancelledError.
    if outcome.status is State.CANCELLED or isinstance(outcome.exception, asyncio.CancelledError):
        return CANCELLED
    if outcome.status is State.TIMED_OUT:
        return f"{TIMED_OUT}{assignment.timeout_seconds:g} s"
    if isinstance(outcome.exception, RefusedByShutdown):
        return f"{REFUSED}{outcome.exception}"
    return outcome.reason or "unknown error"

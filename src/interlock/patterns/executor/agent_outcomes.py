"""From the outcome of a task in the Runtime to that of an agent in a group."""

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
    tell,
)
from interlock.patterns.executor.models import (
    CANCELLED,
    REFUSED,
    TIMED_OUT,
    AgentAssignment,
    AgentOutcome,
    problem_of,
)


class RefusedByShutdown(EngineError):
    """The shutdown manager lets no new task begin."""


StoredOutcome: TypeAlias = tuple[Any, str | None]
"""What a journal keeps of an outcome: the result of a success, otherwise why it was none."""


def outcome_of(assignment: AgentAssignment, outcome: Outcome[Any]) -> AgentOutcome:
    """The same outcome, as the caller of a group is told of it."""
    if isinstance(outcome.exception, Unsuccessful):
        return made(assignment, outcome.exception.result, None)
    if outcome.result is None:
        return made(assignment, None, _error(assignment, outcome))
    return made(assignment, outcome.result, None)


def kept(outcome: AgentOutcome) -> StoredOutcome:
    """What a journal is to keep of it."""
    if outcome.is_success:
        return outcome.result, None
    return None, outcome.error or f"Unsuccessful: {outcome.termination_reason}"


def recalled(assignment: AgentAssignment, each: StoredOutcome) -> AgentOutcome:
    """The outcome again, from what was kept of it."""
    return made(assignment, *each)


def made(assignment: AgentAssignment, result: Any, error: str | None) -> AgentOutcome:
    """An outcome without the checks of the model, since there may be very many of them."""
    task_id, agent_id = assignment.task_id, assignment.agent_id
    if result is not None and (wrong := problem_of(result, task_id, agent_id)):
        # It comes from a journal, and the class it was written from is not loaded.
        result, error = None, f"EngineError: {wrong}"
    return AgentOutcome.model_construct(
        task_id=task_id, agent_id=agent_id, result=result, error=error
    )


def is_fatal(error: BaseException) -> bool:
    """Whether the process itself is in danger."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_fatal(each) for each in error.exceptions)
    return isinstance(error, (MemoryError, RecursionError))


def tell_of(group_id: str, outcome: AgentOutcome, fatal: BaseException | None) -> None:
    """Log how an agent ended."""
    about: dict[str, Any] = {
        "group": group_id,
        "agent": outcome.agent_id,
        "task": outcome.task_id,
    }
    if outcome.error is None:
        tell(PARALLEL_AGENT_COMPLETE, success=outcome.is_success, **about)
    elif outcome.error == CANCELLED:
        tell(PARALLEL_AGENT_CANCELLED, **about)
    else:
        level = None if fatal is None else logging.ERROR
        tell(PARALLEL_AGENT_ERROR, level=level, caused_by=fatal, reason=outcome.error, **about)


def _error(assignment: AgentAssignment, outcome: Outcome[Any]) -> str:
    # A task that was cancelled by whoever manages shutdowns failed with that cancellation.
    if outcome.status is State.CANCELLED or isinstance(outcome.exception, asyncio.CancelledError):
        return CANCELLED
    if outcome.status is State.TIMED_OUT:
        return f"{TIMED_OUT}{assignment.timeout_seconds:g} s"
    if isinstance(outcome.exception, RefusedByShutdown):
        return f"{REFUSED}{outcome.exception}"
    return outcome.reason or "unknown error"

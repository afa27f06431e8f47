"""The log events of an executor: the constant is the message, all else is a field."""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from interlock.runtime.log import LOGGER

PARALLEL_GROUP_START: Final = "execution.parallel.group_start"
PARALLEL_GROUP_COMPLETE: Final = "execution.parallel.group_complete"
PARALLEL_AGENT_START: Final = "execution.parallel.agent_start"
PARALLEL_AGENT_COMPLETE: Final = "execution.parallel.agent_complete"
PARALLEL_AGENT_ERROR: Final = "execution.parallel.agent_error"
PARALLEL_AGENT_CANCELLED: Final = "execution.parallel.agent_cancelled"
PARALLEL_LOCK_ACQUIRED: Final = "execution.parallel.lock_acquired"
PARALLEL_LOCK_RELEASED: Final = "execution.parallel.lock_released"
PARALLEL_LOCK_CONFLICT: Final = "execution.parallel.lock_conflict"
PARALLEL_LOCK_RELEASE_ERROR: Final = "execution.parallel.lock_release_error"
PARALLEL_VALIDATION_ERROR: Final = "execution.parallel.validation_error"
PARALLEL_PROGRESS_UPDATE: Final = "execution.parallel.progress_update"

_LEVELS: Final = {
    PARALLEL_LOCK_ACQUIRED: logging.DEBUG,
    PARALLEL_LOCK_RELEASED: logging.DEBUG,
    PARALLEL_PROGRESS_UPDATE: logging.DEBUG,
    PARALLEL_AGENT_ERROR: logging.WARNING,
    PARALLEL_LOCK_CONFLICT: logging.WARNING,
    PARALLEL_VALIDATION_ERROR: logging.WARNING,
    PARALLEL_LOCK_RELEASE_ERROR: logging.ERROR,
}
"""All other events are INFO."""


class _Assigned(Protocol):
    """An assignment, or its outcome."""

    @property
    def agent_id(self) -> str: ...

    @property
    def task_id(self) -> str: ...


def event_ids(group_id: str, assigned: _Assigned) -> dict[str, Any]:
    """Return the fields that every event about an assignment has."""
    return {"group_id": group_id, "agent_id": assigned.agent_id, "task_id": assigned.task_id}


def log_event(
    event: str, *, level: int | None = None, caused_by: BaseException | None = None, **fields: Any
) -> None:
    """Log an event with its fields, at its usual level unless `level` is given."""
    if level is None:
        level = _LEVELS.get(event, logging.INFO)
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, exc_info=caused_by, extra={"interlock": fields})

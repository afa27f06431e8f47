"""Report to the state manager; an exception that it raises never fails the work."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from interlock.errors import InvalidOption
from interlock.patterns.coordinator.subtask import Id
from interlock.patterns.coordinator.subtask_results import attempt_data_of
from interlock.runtime.log import LOGGER

_METHODS = ("log_parallel_attempt", "get_task", "update_subtask")


class SubtaskMoved(NamedTuple):
    """A subtask has entered a state."""

    subtask_id: Id
    state: str


class SubtaskEnded(NamedTuple):
    """A subtask has ended with a result."""

    result: dict[str, Any]


class GroupRecorded(NamedTuple):
    """A group has ended and has a record."""

    record: dict[str, Any]


StateUpdate = SubtaskMoved | SubtaskEnded | GroupRecorded


class StateWriter:
    """Writes updates to a state manager, each of whose methods may be missing."""

    def __init__(self, state_manager: Any) -> None:
        for name in _METHODS:
            if inspect.iscoroutinefunction(getattr(state_manager, name, None)):
                raise InvalidOption(
                    f"{name} of the state manager is called, not awaited; pass a plain function"
                )
        self._manager = state_manager
        self._log = _log_function(self.method("log_parallel_attempt"))
        self._update = self.method("update_subtask")

    def method(self, name: str) -> Callable[..., Any] | None:
        """Return a method of the state manager, or None."""
        found = getattr(self._manager, name, None)
        return found if callable(found) else None

    @property
    def wants_states(self) -> bool:
        """Whether states are to be reported in addition to results."""
        return self._update is not None

    def write(self, update: StateUpdate) -> dict[str, Any] | None:
        """Write an update; return the result of a subtask that has ended, else None."""
        if isinstance(update, GroupRecorded):
            if self._log is not None:
                _call("log_parallel_attempt", partial(self._log, update.record))
            return None
        result = None
        if isinstance(update, SubtaskEnded):
            result = update.result
            update = SubtaskMoved(result["subtask_id"], result["status"])
        if self._update is not None:
            _call("update_subtask", partial(self._update, *update))
        return result


def _log_function(log: Callable[..., Any] | None) -> Callable[[dict[str, Any]], Any] | None:
    """Return how to log a record: `log(**record)`, or `log(task_id, attempt_data)`.

    A function that accepts any keyword, and has no `attempt_data`, takes the record as keywords.
    """
    if log is None:
        return None
    try:
        parameters = inspect.signature(log).parameters
    except (TypeError, ValueError):  # some functions of C cannot be inspected
        return lambda record: log(**record)
    if "attempt_data" in parameters:
        return lambda record: log(
            task_id=record["parent_task_id"], attempt_data=attempt_data_of(record)
        )
    kinds = [each.kind for each in parameters.values()]
    if len(kinds) == 2 and all(each in _POSITIONAL for each in kinds):
        return lambda record: log(record["parent_task_id"], attempt_data_of(record))
    return lambda record: log(**record)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _call(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
    # A plain function cannot be cancelled: a CancelledError is its own error.
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the user's store
        LOGGER.exception("state_manager_failed", extra={"interlock": {"method": name}})

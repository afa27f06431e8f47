"""Report to the state manager; an exception that it raises never fails the work."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from interlock.errors import InvalidOption
from interlock.patterns.coordinator.subtask import Id
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
        self._log = self.method("log_parallel_attempt")
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
                _call("log_parallel_attempt", partial(self._log, **update.record))
            return None
        result = None
        if isinstance(update, SubtaskEnded):
            result = update.result
            update = SubtaskMoved(result["subtask_id"], result["status"])
        if self._update is not None:
            _call("update_subtask", partial(self._update, *update))
        return result


def _call(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
    # A plain function cannot be cancelled: a CancelledError is its own error.
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the user's store
        LOGGER.exception("state_manager_failed", extra={"interlock": {"method": name}})

"""Telling the state manager; whatever it raises, the work goes on."""

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
    """A subtask is in another state."""

    subtask_id: Id
    state: str


class SubtaskEnded(NamedTuple):
    """A subtask has its result."""

    result: dict[str, Any]


class GroupRecorded(NamedTuple):
    """A group has its record."""

    record: dict[str, Any]


StateUpdate = SubtaskMoved | SubtaskEnded | GroupRecorded


class StateWriter:
    """Writes notes to a state manager, each of whose methods may be missing."""

    def __init__(self, state_manager: Any) -> None:
        for name in _METHODS:
            if inspect.iscoroutinefunction(getattr(state_manager, name, None)):
                raise InvalidOption(
                    f"{name} of the state manager is called, not awaited: give a plain function"
                )
        self._manager = state_manager
        self._log = self.method("log_parallel_attempt")
        self._update = self.method("update_subtask")

    def method(self, name: str) -> Callable[..., Any] | None:
        """One of its methods, if it has it."""
        found = getattr(self._manager, name, None)
        return found if callable(found) else None

    @property
    def wants_states(self) -> bool:
        """Whether it wants to know of states; otherwise results will do."""
        return self._update is not None

    def write(self, note: StateUpdate) -> dict[str, Any] | None:
        """Pass on what happened; a result, where there is one."""
        if isinstance(note, GroupRecorded):
            if self._log is not None:
                _tell("log_parallel_attempt", partial(self._log, **note.record))
            return None
        if isinstance(note, SubtaskEnded):
            result = note.result
            note = SubtaskMoved(result["subtask_id"], result["status"])
        else:
            result = None
        if self._update is not None:
            _tell("update_subtask", partial(self._update, *note))
        return result


def _tell(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
    # A plain function cannot be cancelled: what looks like that is an error of its own.
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 - a stranger's store
        LOGGER.exception("state_manager_failed", extra={"interlock": {"method": name}})

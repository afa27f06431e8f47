"""Telling the state manager; whatever it raises, the work goes on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from interlock.errors import InvalidOption
from interlock.patterns.coordinator_models import Id
from interlock.runtime.log import LOGGER

_METHODS = ("log_parallel_attempt", "get_task", "update_subtask")


class Moved(NamedTuple):
    """A subtask is in another state."""

    subtask_id: Id
    state: str


class Ended(NamedTuple):
    """A subtask has its result."""

    result: dict[str, Any]


class Recorded(NamedTuple):
    """A group has its record."""

    record: dict[str, Any]


Note = Moved | Ended | Recorded


class Scribe:
    """Writes notes to a state manager, each of whose methods may be missing."""

    def __init__(self, state_manager: Any) -> None:
        for name in _METHODS:
            if inspect.iscoroutinefunction(getattr(state_manager, name, None)):
                raise InvalidOption(
                    f"{name} of the state manager is called, not awaited: give a plain function"
                )
        self._manager = state_manager

    def method(self, name: str) -> Callable[..., Any] | None:
        """One of its methods, if it has it."""
        found = getattr(self._manager, name, None)
        return found if callable(found) else None

    def write(self, note: Note) -> dict[str, Any] | None:
        """Pass on what happened; a result, where there is one."""
        if isinstance(note, Recorded):
            self._tell("log_parallel_attempt", **note.record)
            return None
        if isinstance(note, Moved):
            self._tell("update_subtask", note.subtask_id, note.state)
            return None
        self._tell("update_subtask", note.result["subtask_id"], note.result["status"])
        return note.result

    def _tell(self, name: str, /, *args: Any, **record: Any) -> None:
        method = self.method(name)
        if method is None:
            return
        try:
            method(*args, **record)
        except Exception:  # noqa: BLE001 - a stranger's store; the work does not depend on it
            LOGGER.exception("state_manager_failed", extra={"interlock": {"method": name}})

"""`SubTask`, and the protocols of agents and state managers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import Any, Protocol, TypeAlias

from interlock.errors import BlankId, InvalidOption
from interlock.model.stable_names import stable_name

Id: TypeAlias = int | str

_HUGE = 10**100
"""No sensible number, and far below the range in which floats are infinite."""


@stable_name("data.subtask")
@dataclass(frozen=True)
class SubTask:
    """A part of a task, for one agent.

    The subtasks of a `parallel_group` run together, one group after another; a subtask without a
    group runs alone, after them. `dependencies` are ids of subtasks that have to be completed
    first, `files` the paths and patterns that it modifies. If `is_test` is None, title and
    description decide. An estimate of 0 minutes, or None, means unknown.

    A subtask that is not `parallelizable` never runs beside another one, as a test. `status` and
    `created_at` are kept as given; the state manager receives what becomes of the subtask.
    """

    subtask_id: Id
    parent_task_id: Id
    title: str
    description: str
    estimated_complexity: float | None
    estimated_duration_minutes: float | None
    parallel_group: int | None = None
    dependencies: Iterable[Id] = ()
    files: Iterable[str | PurePath] = ()
    is_test: bool | None = None
    parallelizable: bool = field(default=True, kw_only=True)
    status: str = field(default="pending", kw_only=True, compare=False)
    created_at: datetime | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        check_id(self.subtask_id, "subtask_id")
        for name in ("title", "description"):
            if not isinstance(getattr(self, name), str):
                raise InvalidOption(f"{self}: {name} is {getattr(self, name)!r}; it must be text")
        for name in ("estimated_complexity", "estimated_duration_minutes"):
            value = getattr(self, name)
            if value is not None and not _is_amount(value):
                raise InvalidOption(
                    f"{self}: {name} is {_show(value)}; it must be a number from 0 to 1e100"
                )
        group = self.parallel_group
        if group is not None and (isinstance(group, bool) or not isinstance(group, int)):
            raise InvalidOption(f"{self}: parallel_group is {group!r}; it must be a number or None")
        if not isinstance(self.is_test, bool | None):
            raise InvalidOption(f"{self}: is_test is {self.is_test!r}; use True, False or None")
        if not isinstance(self.parallelizable, bool):
            raise InvalidOption(
                f"{self}: parallelizable is {self.parallelizable!r}; use True or False"
            )
        # Frozen, so normalise the fields this way.
        object.__setattr__(self, "dependencies", self._as_tuple("dependencies", (int, str)))
        object.__setattr__(self, "files", self._as_tuple("files", (str, PurePath)))

    def _as_tuple(self, name: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
        given = getattr(self, name)
        if isinstance(given, kinds):
            return (given,)
        if not isinstance(given, Iterable):
            raise InvalidOption(f"{self}: {name} is {given!r}; it must be a list")
        listed = tuple(dict.fromkeys(given))
        for each in listed:
            if isinstance(each, bool) or not isinstance(each, kinds):
                raise InvalidOption(f"{self}: {each!r} is not allowed in {name}")
        return listed

    def __str__(self) -> str:
        return f"subtask {self.subtask_id!r} ({self.title!r})"


def check_id(value: Any, what: str) -> None:
    """Raise unless a value is an id: a number, or text that is not blank."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidOption(f"{what} is {value!r}; it must be a number or text")
    if isinstance(value, int) and abs(value) >= _HUGE:
        raise InvalidOption(f"{what} is {_show(value)}; use a smaller one, or text")
    if isinstance(value, str) and not value.strip():
        raise BlankId(f"{what} is blank; it must be a number, or text that is not blank")


def sort_key(subtask_id: Id) -> tuple[bool, Id]:
    """Sort ids by this: numbers first, then texts."""
    return isinstance(subtask_id, str), subtask_id


def _is_amount(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < _HUGE


def _show(value: Any) -> str:
    """Show a number; Python refuses to print the longest ones."""
    huge = isinstance(value, int) and abs(value) >= _HUGE
    return "a number of more than 100 digits" if huge else repr(value)


class AgentPlugin(Protocol):
    """An agent for a coordinator; its methods may be async.

    It may also have `initialize(config)`, `cleanup()` and an `agent_id`.
    """

    def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any: ...


class StateManager(Protocol):
    """Receives the states of subtasks. Each method may be missing; none may be async."""

    def log_parallel_attempt(self, **record: Any) -> Any:
        """Receive the record of a group that has ended.

        It may also be `log_parallel_attempt(task_id, attempt_data)`.
        """

    def get_task(self, task_id: Id) -> Any:
        """Return a task by its id, for an Orchestrator."""

    def update_subtask(self, subtask_id: Id, state: str) -> Any:
        """Receive `pending`, then `in_progress`, then the status of the result."""


def attribute_of(task: Any, name: str) -> Any:
    """Return an attribute of an object or an entry of a mapping; None if it is missing."""
    if isinstance(task, Mapping):
        return task.get(name)
    return getattr(task, name, None)


def id_of(task: Any) -> Any:
    """Return the id of a parent task, or the task itself if it is just an id."""
    if isinstance(task, int | str) or task is None:
        return task
    for name in ("task_id", "id"):
        found = attribute_of(task, name)
        if isinstance(found, int | str):
            return found
    return None

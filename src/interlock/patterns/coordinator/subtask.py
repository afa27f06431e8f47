"""What a coordinator works with: subtasks, and what it expects of agents and state managers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol, TypeAlias

from interlock.errors import BlankId, InvalidOption

Id: TypeAlias = int | str

_HUGE = 10**100
"""No number that anybody means, and far from where numbers are infinite."""


@dataclass(frozen=True)
class SubTask:
    """A part of a task, for one agent.

    Subtasks of a `parallel_group` run together, the groups one after another; without a group it
    runs after them, alone. `dependencies` are the ids of subtasks that have to be completed first,
    `files` the paths and patterns that it modifies. `is_test` None: its title and description
    say whether it is one. An estimate of 0 minutes, or None, means that nobody knows.
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

    def __post_init__(self) -> None:
        check_id(self.subtask_id, "subtask_id")
        for name in ("title", "description"):
            if not isinstance(getattr(self, name), str):
                raise InvalidOption(f"{self}: {name} is {getattr(self, name)!r}, not text")
        for name in ("estimated_complexity", "estimated_duration_minutes"):
            value = getattr(self, name)
            if value is not None and not _is_amount(value):
                raise InvalidOption(
                    f"{self}: {name} is {_shown(value)}; it is a number, 0 or more, below 1e100"
                )
        group = self.parallel_group
        if group is not None and (isinstance(group, bool) or not isinstance(group, int)):
            raise InvalidOption(f"{self}: parallel_group is {group!r}; it is a number, or None")
        if not isinstance(self.is_test, bool | None):
            raise InvalidOption(f"{self}: is_test is {self.is_test!r}; it is True, False or None")
        # Frozen, so what was given is brought into one form here.
        object.__setattr__(self, "dependencies", self._listed("dependencies", (int, str)))
        object.__setattr__(self, "files", self._listed("files", (str, PurePath)))

    def _listed(self, name: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
        given = getattr(self, name)
        if isinstance(given, kinds):
            return (given,)
        if not isinstance(given, Iterable):
            raise InvalidOption(f"{self}: {name} is {given!r}; give a list")
        listed = tuple(dict.fromkeys(given))
        for each in listed:
            if isinstance(each, bool) or not isinstance(each, kinds):
                raise InvalidOption(f"{self}: {each!r} has no place in its {name}")
        return listed

    def __str__(self) -> str:
        return f"subtask {self.subtask_id!r} ({self.title!r})"


def check_id(value: Any, what: str) -> None:
    """Raise for what is no id: neither a number nor text that is not blank."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidOption(f"{what} is {value!r}; it is a number or text")
    if isinstance(value, int) and abs(value) >= _HUGE:
        raise InvalidOption(f"{what} is {_shown(value)}; give a smaller one, or text")
    if isinstance(value, str) and not value.strip():
        raise BlankId(f"{what} is blank; it is a number, or text that is not blank")


def in_order(subtask_id: Id) -> tuple[bool, Id]:
    """What to sort ids by: numbers first, then texts."""
    return isinstance(subtask_id, str), subtask_id


def _is_amount(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < _HUGE


def _shown(value: Any) -> str:
    """A number as text; Python itself refuses to write out the longest ones."""
    huge = isinstance(value, int) and abs(value) >= _HUGE
    return "a number of more than 100 digits" if huge else repr(value)


class AgentPlugin(Protocol):
    """An agent as a coordinator likes it best; also with async methods.

    It may have `initialize(config)` and `cleanup()` as well, and an `agent_id`.
    """

    def send_prompt(self, prompt: str, context: dict[str, Any]) -> Any: ...


class StateManager(Protocol):
    """Is told what becomes of subtasks. Each of these may be missing, and none is async."""

    def log_parallel_attempt(self, **record: Any) -> Any:
        """One record for each group, when it has ended."""

    def get_task(self, task_id: Id) -> Any:
        """The task of an id, for an Orchestrator."""

    def update_subtask(self, subtask_id: Id, state: str) -> Any:
        """A subtask is `pending`, then `in_progress`, then what its result says."""


def about(task: Any, name: str) -> Any:
    """What a task says of itself: an object with attributes, a mapping; None if it does not."""
    if isinstance(task, Mapping):
        return task.get(name)
    return getattr(task, name, None)


def id_of(task: Any) -> Any:
    """The id of a parent task; the task itself, where it is just an id."""
    if isinstance(task, int | str) or task is None:
        return task
    for name in ("task_id", "id"):
        found = about(task, name)
        if isinstance(found, int | str):
            return found
    return None

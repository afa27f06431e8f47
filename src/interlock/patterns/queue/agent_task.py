"""`AgentTask`: a task as a queue accepts it, and its conversion into a task of the Runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from interlock.errors import AgentError, InvalidOption, InvalidOwnership
from interlock.model.claim import Claim, Patterns, as_claims, uses
from interlock.model.duration import Duration
from interlock.model.limits import Retry
from interlock.model.stable_names import stable_name
from interlock.model.task import Named, Task
from interlock.patterns.queue.agent_registry import AgentRegistry
from interlock.patterns.queue.file_ownership import FileOwnership

Dependency = str | Named | Future[Any]
"""A task that has to succeed first: its id or its Future."""


@stable_name("data.agent_task")
@dataclass(frozen=True)
class AgentTask:
    """Work for one type of agent.

    `files_to_modify` are patterns; `[]` means read-only, None means everything that the agent type
    owns. `execute_fn` is any agent: a function, blocking or async, or an object with `run(ctx)`;
    the description is its prompt. Without one, the AgentRegistry makes the agent. A higher
    `priority` goes first. At most `attempts` are made, the second `backoff` seconds after the
    first, each further one after twice that time. `timeout` limits each attempt from its start.
    """

    agent_type: str
    task_description: str
    files_to_modify: Patterns | None
    execute_fn: Any = None
    priority: int = 0
    id: str | None = field(default=None, kw_only=True)
    after: Dependency | Iterable[Dependency] = field(default=(), kw_only=True)
    reads: Patterns = field(default=(), kw_only=True)
    attempts: int = field(default=1, kw_only=True)
    backoff: Duration = field(default=1.0, kw_only=True)
    timeout: Duration | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.agent_type, str) or not self.agent_type.strip():
            raise InvalidOption(
                f"agent_type is {self.agent_type!r}; it must be a name that is not blank"
            )
        if not isinstance(self.task_description, str):
            raise InvalidOption(
                f"{self.agent_type}: task_description is {self.task_description!r}; it must be text"
            )
        if self.id is not None and (not isinstance(self.id, str) or not self.id.strip()):
            raise InvalidOption(f"{self.agent_type}: id is {self.id!r}; it must be non-blank text")
        for name in ("files_to_modify", "reads"):
            object.__setattr__(self, name, self._as_tuple(name))

    def _as_tuple(self, name: str) -> tuple[str | PurePath, ...] | None:
        """Convert text, a path, or any number of them."""
        given = getattr(self, name)
        if given is None and name == "files_to_modify":
            return None
        if isinstance(given, (str, PurePath)):
            return (given,)
        if not isinstance(given, Iterable):
            raise InvalidOption(f"{self.agent_type}: {name} is {given!r}; it must be a list")
        return tuple(given)


def as_task(
    given: AgentTask, task_id: str, after: tuple[str, ...], ownership: FileOwnership | None
) -> Task:
    """Convert a task for the Runtime; raises an error of use if it is invalid."""
    agent_type = given.agent_type
    agent = given.execute_fn
    if agent is None:
        agent = _make_agent(agent_type)
    try:
        return Task(
            task_id,
            agent,
            prompt=given.task_description,
            claims=_claims(given, ownership),
            after=after,
            priority=given.priority,
            timeout=given.timeout,
            retry=None if given.attempts == 1 else Retry(given.attempts, given.backoff),
            labels={"agent_type": agent_type},
        )
    except InvalidOption as error:
        raise InvalidOption(f"{task_id} ({given.task_description!r}): {error}") from error


def _claims(given: AgentTask, ownership: FileOwnership | None) -> tuple[Claim, ...]:
    files = given.files_to_modify
    if files is None:
        files = () if ownership is None else tuple(ownership.get_owned_paths(given.agent_type))
        if files == ():
            raise InvalidOwnership(
                f"{given.agent_type}: files_to_modify is None, which means everything that this "
                "agent type owns, but the queue does not know what that is; list the files, or "
                "create the queue with ownership=FileOwnership({...})"
            )
    elif ownership is not None:
        ownership.require_ownership(given.agent_type, files)
    # One task of each type at a time: the task holds the name exclusively while it runs.
    single = _singleton(given.agent_type)
    if files == () and given.reads == ():
        return (single,)
    return (single, *as_claims(given.reads, files))


@lru_cache(maxsize=1024)
def _singleton(agent_type: str) -> Claim:
    return uses(f"agent {agent_type}", exclusive=True)


def _make_agent(agent_type: str) -> Any:
    """Make an agent by the registry."""
    factory = AgentRegistry.get(agent_type)
    try:
        return factory()
    except Exception as error:
        raise AgentError(f"the factory of {agent_type!r} failed: {error!r}", agent_type) from error


_KEYS = {
    "agent_type": "agent_type",
    "description": "task_description",
    "files": "files_to_modify",
    "execute_fn": "execute_fn",
    "priority": "priority",
    "id": "id",
    "after": "after",
    "reads": "reads",
    "attempts": "attempts",
    "backoff": "backoff",
    "timeout": "timeout",
}


def from_entry(entry: Mapping[str, Any], number: int) -> AgentTask:
    """Convert an entry of `delegate_tasks_parallel`; an error names the entry."""
    where = f"task {number} to delegate"
    if not isinstance(entry, Mapping):
        raise InvalidOption(
            f"{where} is {entry!r}; write {{'agent_type': ..., 'description': ...}}"
        )
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        raise InvalidOption(f"{where} has {unknown[0]!r}; it can have {', '.join(_KEYS)}")
    missing = [key for key in ("agent_type", "description") if key not in entry]
    if missing:
        raise InvalidOption(f"{where} has no {missing[0]!r}: {dict(entry)!r}")
    # As in AgentTask, None means everything that the agent type owns. No `files` means none.
    values = {"files_to_modify": (), **{_KEYS[key]: value for key, value in entry.items()}}
    try:
        return AgentTask(**values)
    except InvalidOption as error:
        raise InvalidOption(f"{where}: {error}") from error

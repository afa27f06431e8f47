"""A task: one unit of work, with what it touches and what it waits for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol

from interlock.errors import BlankId, InvalidOption
from interlock.model.claim import Claim, Patterns, as_claims
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Retry
from interlock.model.template import Template

ONCE = Retry(attempts=1)
NOTHING: Mapping[str, Any] = MappingProxyType({})
WORKSPACES = ("shared",)
GUARDS = ("none",)

_set = object.__setattr__


class Named(Protocol):
    """Anything that names a task: a handle or an outcome."""

    @property
    def task_id(self) -> str: ...


After = str | Named | Iterable[str | Named]


@dataclass(frozen=True, slots=True, init=False)
class Task:
    """A unit of work. Frozen: `task.replace(...)` makes a changed copy.

    The agent is called with `args` and `kwargs`; it finds `prompt` and `labels` in its context.
    A `Template` as prompt quotes results of other tasks, and the task comes after those.
    `writes`, `reads` and `uses` are shorthands for `claims`.
    `timeout` is per attempt; `deadline` covers the task with all its attempts: a duration from
    submission, or a datetime. `estimate` is how long one attempt is expected to take; it only
    influences the order of starts. `output` is a type that the result is validated against.
    `key` is an idempotency key: two submissions with one key are one task.
    """

    id: str
    agent: Any
    prompt: str | Template | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    claims: tuple[Claim, ...]
    after: tuple[str, ...]
    priority: int
    timeout: float | None
    deadline: float | datetime | None
    retry: Retry
    estimate: float | None
    key: str | None
    workspace: str | None
    guard: str | None
    output: Any
    labels: Mapping[str, str]

    def __init__(
        self,
        id: str,
        agent: Any = None,
        *,
        prompt: str | Template | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] = NOTHING,
        writes: Patterns = (),
        reads: Patterns = (),
        uses: str | Claim | Iterable[str | Claim] = (),
        claims: Iterable[Claim] = (),
        after: After = (),
        priority: int = 0,
        timeout: Duration | None = None,
        deadline: Duration | datetime | None = None,
        retry: Retry | None = None,
        estimate: Duration | None = None,
        key: str | None = None,
        workspace: str | None = None,
        guard: str | None = None,
        output: Any = None,
        labels: Mapping[str, str] = NOTHING,
    ) -> None:
        if not isinstance(id, str) or not id.strip():
            raise BlankId(f"a task needs an id, text that is not blank, not {id!r}")
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise InvalidOption(f"task {id!r}: priority is {priority!r}; it must be a whole number")
        claimed = _checked(claims, id)
        if writes != () or reads != () or uses != ():
            try:
                claimed += as_claims(reads, writes, uses)
            except InvalidOption as error:
                raise InvalidOption(f"task {id!r}: {error}") from error
        if not isinstance(retry, Retry | None):
            raise InvalidOption(f"task {id!r}: retry is {retry!r}; write Retry(attempts=3)")
        _set(self, "id", id)
        _set(self, "agent", agent)
        ids = _ids(after, id)
        if isinstance(prompt, Template):
            _set(self, "prompt", prompt)
            ids = tuple(dict.fromkeys((*ids, *prompt.references)))
        else:
            _set(self, "prompt", _text(prompt, id, "prompt"))
        _set(self, "args", () if args == () else _arguments(args, id))
        _set(self, "kwargs", NOTHING if kwargs is NOTHING else _mapping(kwargs, id, "kwargs"))
        _set(self, "claims", claimed)
        _set(self, "after", ids)
        _set(self, "priority", priority)
        _set(self, "timeout", _optional(timeout, id, "timeout"))
        _set(self, "deadline", _moment(deadline, id))
        _set(self, "retry", retry or ONCE)
        _set(self, "estimate", _optional(estimate, id, "estimate"))
        _set(self, "key", _text(key, id, "key"))
        _set(self, "workspace", _one_of(workspace, WORKSPACES, id, "workspace"))
        _set(self, "guard", _one_of(guard, GUARDS, id, "guard"))
        _set(self, "output", output)
        _set(self, "labels", NOTHING if labels is NOTHING else _labels(labels, id))

    def replace(self, **changes: Any) -> Task:
        """Return a copy with some options changed. `claims` replaces all claims."""
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return Task(**(kept | changes))

    def renamed(self, id: str) -> Task:
        """Return the same task under another id, without checking everything again."""
        return self._copy("id", id)

    def claiming(self, claim: Claim) -> Task:
        """Return the same task with one more claim, without checking everything again."""
        return self._copy("claims", type(self.claims)((*self.claims, claim)))

    def _copy(self, changed: str, value: Any) -> Task:
        copy = object.__new__(Task)
        for name, kept in zip(_FIELDS, _ALL_FIELDS(self), strict=True):
            _set(copy, name, kept)
        _set(copy, changed, value)
        return copy


_FIELDS = tuple(field.name for field in dataclasses.fields(Task))
_ALL_FIELDS = attrgetter(*_FIELDS)


def _checked(claims: Iterable[Claim], task_id: str) -> tuple[Claim, ...]:
    if claims == ():
        return ()
    single = isinstance(claims, str) or not isinstance(claims, Iterable)
    listed: tuple[Any, ...] = (claims,) if single else claims  # type: ignore[assignment]
    if not isinstance(listed, tuple):
        listed = tuple(listed)
    for claim in listed:
        if not isinstance(claim, Claim):
            raise InvalidOption(
                f"task {task_id!r}: {claim!r} in claims is not a claim; make one with read(), "
                "write() or uses(), or write it into reads=, writes= or uses="
            )
    return listed


def _ids(after: After, task_id: str) -> tuple[str, ...]:
    if after == ():
        return ()
    single = isinstance(after, str) or hasattr(after, "task_id") or not isinstance(after, Iterable)
    listed: Iterable[Any] = (after,) if single else after  # type: ignore[assignment]
    ids = tuple(dict.fromkeys(getattr(each, "task_id", each) for each in listed))
    for each in ids:
        if not isinstance(each, str):
            raise InvalidOption(f"task {task_id!r}: after names tasks by their ids, not {each!r}")
    return ids


def _arguments(args: Iterable[Any], task_id: str) -> tuple[Any, ...]:
    if isinstance(args, str) or not isinstance(args, Iterable):
        raise InvalidOption(f"task {task_id!r}: args is {args!r}; write a tuple, such as (1, 2)")
    return tuple(args)


def _mapping(value: Mapping[str, Any], task_id: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidOption(f"task {task_id!r}: {what} is {value!r}; it maps names to values")
    return MappingProxyType(dict(value)) if value else NOTHING


def _labels(labels: Mapping[str, str], task_id: str) -> Mapping[str, str]:
    checked = _mapping(labels, task_id, "labels")
    for name, value in checked.items():
        if not isinstance(value, str):
            raise InvalidOption(f"task {task_id!r}: label {name!r} is {value!r}; labels are text")
    return checked


def _text(value: str | None, task_id: str, what: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidOption(f"task {task_id!r}: {what} is {value!r}; it must be text")
    return value


def _one_of(value: str | None, known: tuple[str, ...], task_id: str, what: str) -> str | None:
    if value is not None and value not in known:
        allowed = " or ".join(repr(each) for each in known)
        raise InvalidOption(f"task {task_id!r}: {what} is {value!r}; today it can be {allowed}")
    return value


def _moment(value: Duration | datetime | None, task_id: str) -> float | datetime | None:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidOption(
                f"task {task_id!r}: deadline {value} has no time zone; "
                "write datetime.now(UTC) + ..., or a duration"
            )
        return value
    return _optional(value, task_id, "deadline")


def _optional(value: Duration | None, task_id: str, what: str) -> float | None:
    return None if value is None else seconds(value, f"task {task_id!r}: {what}")

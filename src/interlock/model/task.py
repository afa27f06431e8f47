"""A task: one unit of work, with what it touches and what it waits for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from interlock.errors import BlankId, InvalidOption
from interlock.model.claim import Claim, Patterns, as_claims
from interlock.model.duration import Duration, seconds
from interlock.model.limits import Retry

ONCE = Retry(attempts=1)

_set = object.__setattr__


@dataclass(frozen=True, slots=True, init=False)
class Task:
    """A unit of work. Frozen: `task.replace(...)` makes a changed copy.

    `writes`, `reads` and `uses` are shorthand for `claims`, where they all end up.
    `timeout` is per attempt; `deadline` covers the task with all its attempts, from submission.
    `estimate` is how long one attempt is thought to take; it only influences the order of starts.
    """

    id: str
    agent: Any
    claims: tuple[Claim, ...]
    after: tuple[str, ...]
    priority: int
    timeout: float | None
    deadline: float | None
    retry: Retry
    estimate: float | None

    def __init__(
        self,
        id: str,
        agent: Any = None,
        *,
        writes: Patterns = (),
        reads: Patterns = (),
        uses: str | Claim | Iterable[str | Claim] = (),
        claims: Iterable[Claim] = (),
        after: str | Iterable[str] = (),
        priority: int = 0,
        timeout: Duration | None = None,
        deadline: Duration | None = None,
        retry: Retry | None = None,
        estimate: Duration | None = None,
    ) -> None:
        if not isinstance(id, str) or not id.strip():
            raise BlankId(f"a task needs an id that is not blank, not {id!r}")
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
        _set(self, "claims", claimed)
        _set(self, "after", _ids(after, id))
        _set(self, "priority", priority)
        _set(self, "timeout", _optional(timeout, id, "timeout"))
        _set(self, "deadline", _optional(deadline, id, "deadline"))
        _set(self, "retry", retry or ONCE)
        _set(self, "estimate", _optional(estimate, id, "estimate"))

    def replace(self, **changes: Any) -> Task:
        """A copy with some options changed; `claims` replaces all claims."""
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return Task(**(kept | changes))


def _checked(claims: Iterable[Claim], task_id: str) -> tuple[Claim, ...]:
    if claims == ():
        return ()
    single = isinstance(claims, str) or not isinstance(claims, Iterable)
    listed: tuple[Any, ...] = (claims,) if single else tuple(claims)
    for claim in listed:
        if not isinstance(claim, Claim):
            raise InvalidOption(
                f"task {task_id!r}: {claim!r} in claims is no claim; make one with read(), "
                "write() or uses(), or write it into reads=, writes= or uses="
            )
    return listed


def _ids(after: str | Iterable[str], task_id: str) -> tuple[str, ...]:
    if after == ():
        return ()
    listed = (after,) if isinstance(after, str) or not isinstance(after, Iterable) else after
    ids = tuple(dict.fromkeys(listed))
    for each in ids:
        if not isinstance(each, str):
            raise InvalidOption(f"task {task_id!r}: after names tasks by their ids, not {each!r}")
    return ids


def _optional(value: Duration | None, task_id: str, what: str) -> float | None:
    return None if value is None else seconds(value, f"task {task_id!r}: {what}")

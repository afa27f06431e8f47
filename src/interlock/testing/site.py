"""The site: where fake agents work. It records which attempt was there, when, touching what.

It knows what was done and nothing of what was decided, so it can judge the decisions.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any, NamedTuple

from interlock.model.claim import Claim, Mode
from interlock.model.conflict import conflicts
from interlock.runtime.context import TaskContext


class Moment(NamedTuple):
    """When something happened. Many things happen at one virtual time, so moments are numbered."""

    number: float
    time: float


NEVER = Moment(math.inf, math.inf)


class Touch(NamedTuple):
    """A path that was read or written."""

    at: Moment
    path: str
    wrote: bool


class Visit:
    """One attempt as it was carried out, from the first line of the agent to the last."""

    def __init__(
        self, site: Site, task_id: str, attempt: int, claims: Iterable[Claim], context: Any
    ) -> None:
        self.site = site
        self.task_id = task_id
        self.attempt = attempt
        self.context: TaskContext | None = context
        """None in a process."""
        self.began = site.now()
        self.gone = NEVER
        self.told = NEVER
        """When it first noticed that it should stop."""
        self.holds = [(claim, self.began) for claim in claims]
        """What it claims, and since when."""
        self.touches: list[Touch] = []
        self.lent: list[tuple[Moment, Moment]] = []
        """When its slot was lent out: while it waited in mid-flight."""
        self.given: tuple[Any, ...] = ()
        """Its arguments."""
        self.value: Any = None
        """What it is going to return."""
        self.ended_by: BaseException | None = None
        self.killed = False
        self.swallows = 0
        """How many cancellations it ignores in all."""
        self.swallowed = 0
        self._waits = 0
        self._since = NEVER

    def touch(self, path: str, *, wrote: bool) -> None:
        """Read or write a path."""
        self.touches.append(Touch(self.site.now(), path, wrote))

    def swallow(self) -> bool:
        """A cancellation has come; whether to ignore it."""
        self.notice()
        if self.swallowed >= self.swallows:
            return False
        self.swallowed += 1
        return True

    def notice(self) -> None:
        """Note that it knows it should stop; only cancellations by Interlock count."""
        if self.told is NEVER and not self.never_told:
            self.told = self.site.now()

    @property
    def is_waiting(self) -> bool:
        """Whether it waits in mid-flight, with its slot lent out."""
        return self._waits > 0

    @property
    def was_stopped(self) -> bool:
        """Whether it has been told to stop, whether or not it has noticed."""
        return self.context is not None and self.context.cancelled()

    @property
    def never_told(self) -> bool:
        """Whether it could not have known that it should stop."""
        return self.context is not None and not self.context.cancelled()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait in mid-flight with the slot lent out; for good if it is told to stop meanwhile."""
        had_a_slot = not self.was_stopped
        if not self._waits:
            self._since = self.site.now()
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                lost = had_a_slot and self.was_stopped
                self.lent.append((self._since, NEVER if lost else self.site.now()))
                self._since = NEVER

    def has_a_slot_at(self, number: float) -> bool:
        """Whether it was working at that moment, and not waiting in mid-flight."""
        if not self.began.number <= number < self.gone.number:
            return False
        lent = [*self.lent, (self._since, NEVER)]
        return not any(since.number <= number < until.number for since, until in lent)

    def __repr__(self) -> str:
        gone = "..." if self.gone is NEVER else f"{self.gone.time:g}"
        return f"{self.task_id}#{self.attempt} ({self.began.time:g} to {gone})"


class Site:
    """Keeps one Visit for each attempt whose agent has run at least one line."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.parents: dict[str, str] = {}
        """The parent of each task that is a child."""
        self._moments = 0

    def now(self) -> Moment:
        """The next moment."""
        self._moments += 1
        return Moment(self._moments, asyncio.get_running_loop().time())

    def arrive(self, context: TaskContext) -> Visit:
        """An agent begins."""
        task, parent = context.task, context._handle.parent
        if parent is not None:
            self.parents[task.id] = parent[0]
        return self._add(Visit(self, task.id, context.attempt, task.claims, context))

    def arrive_without_context(self, task_id: str, claims: Iterable[Claim]) -> Visit:
        """An agent begins in a process of its own."""
        attempt = 1 + sum(each.task_id == task_id for each in self.visits)
        return self._add(Visit(self, task_id, attempt, claims, None))

    def _add(self, visit: Visit) -> Visit:
        self.visits.append(visit)
        return visit

    def leave(self, visit: Visit) -> None:
        """An agent has ended, and nothing of it runs any more."""
        visit.gone = self.now()

    def of(self, task_id: str) -> list[Visit]:
        """The visits of one task, in order."""
        return [visit for visit in self.visits if visit.task_id == task_id]

    def are_kin(self, a: str, b: str) -> bool:
        """Whether one is an ancestor of the other: a child may touch what its parent holds."""
        return b in self.above(a) or a in self.above(b)

    def above(self, task_id: str) -> Iterator[str]:
        """The ancestors of a task, the nearest first."""
        while (parent := self.parents.get(task_id)) is not None:
            yield parent
            task_id = parent

    # -- what must never be -----------------------------------------------------------------

    def clashes(self) -> list[str]:
        """Attempts that overlapped although their claims conflict or they touched one path."""
        found: list[str] = []
        for a, b in combinations(self.visits, 2):
            met = a.began.number < b.gone.number and b.began.number < a.gone.number
            if met and not self.are_kin(a.task_id, b.task_id):
                found += self._between(a, b)
        return found

    def _between(self, a: Visit, b: Visit) -> Iterator[str]:
        for claim, since in a.holds:
            for another, since_then in b.holds:
                both = max(since, since_then).number < min(a.gone, b.gone).number
                if both and _exclude(claim, another):
                    yield f"{a} holds {claim} while {b} holds {another}"
        for mine in a.touches:
            for other in b.touches:
                # An attempt that has touched a path holds it until it is gone.
                both = max(mine.at, other.at).number < min(a.gone, b.gone).number
                if both and mine.path == other.path and (mine.wrote or other.wrote):
                    yield f"{a} and {b} both touched {mine.path}"

    def unclaimed(self) -> list[str]:
        """Paths that were touched before they were claimed, or without a claim."""
        found = []
        for visit in self.visits:
            for touch in visit.touches:
                mode = Mode.WRITE if touch.wrote else Mode.READ
                claims = [c for c, since in visit.holds if since <= touch.at and c.is_path]
                if not any(_covers(claim, touch.path, mode) for claim in claims):
                    found.append(f"{visit} touched {touch.path} without a claim to {mode} it")
        return found


def _exclude(a: Claim, b: Claim) -> bool:
    if a.is_path or b.is_path:
        return a.is_path and b.is_path and bool(conflicts(a, b))
    return a.resource == b.resource and Mode.EXCLUSIVE in (a.mode, b.mode)


def _covers(claim: Claim, path: str, mode: Mode) -> bool:
    if mode is Mode.WRITE and claim.mode is Mode.READ:
        return False
    return bool(conflicts(Claim(claim.resource, Mode.WRITE), Claim(path, Mode.READ)))

"""The oracle's own model of the state: plain records, and brute-force questions about them.

Nothing here asks the kernel, and nothing here is clever: every question walks over all tasks and
all attempts. It is slow on purpose, because it has to be obviously right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from interlock.model.claim import Claim, Mode
from interlock.model.conflict import conflicts
from interlock.model.limits import Quota, Rate
from interlock.model.outcome import State
from interlock.model.task import Task


class Violation(Exception):
    """A rule was broken; the text is one sentence that says which, and by which task."""


@dataclass(slots=True, eq=False)
class ShadowRequest:
    """What an attempt waits for in mid-flight. A withdrawn request becomes the kind `slot`."""

    kind: str
    number: int
    claims: tuple[Claim, ...] = ()
    tasks: tuple[str, ...] = ()
    """The tasks that it waits for."""
    answered: bool = False

    @property
    def lends(self) -> bool:
        """Whether the slot is lent out for that wait; while waiting for a rate it is kept."""
        return self.kind != "take"


@dataclass(slots=True, eq=False)
class ShadowAttempt:
    """An attempt that is alive: from its start until it is gone."""

    item: ShadowTask
    number: int
    token: int
    started_at: float
    claims: tuple[Claim, ...]
    stopped: bool = False
    ended: bool = False
    doomed: bool = False
    """Its parent or its group ended in this turn, so it must be told to stop."""
    outside: bool = False
    """Not of this run: it holds its claims as a zombie does, and has no slot."""
    has_slot: bool = True
    """Lent out while it waits for claims, tasks or a person; returned with the last resume."""
    requests: dict[int, ShadowRequest] = field(default_factory=dict)
    """What it waits for, by number: an agent may have several requests at once."""

    @property
    def asks(self) -> bool:
        """Whether one of its requests is a question to a person."""
        return any(request.kind == "ask" for request in self.requests.values())

    def needs_slot(self, request: ShadowRequest) -> bool:
        """Whether the answer to this request returns the slot: only that to the last one does."""
        others = (other for other in self.requests.values() if other is not request)
        return not self.has_slot and not any(other.lends for other in others)

    @property
    def over(self) -> bool:
        """Ended or told to stop, but not gone: a zombie that still holds everything."""
        return self.stopped or self.ended or self.doomed


@dataclass(slots=True, eq=False)
class ShadowTask:
    """A task as the oracle sees it."""

    task: Task
    submitted_at: float
    parent: ShadowAttempt | None
    group: ShadowGroup | None
    status: State | None = None
    attempt: ShadowAttempt | None = None
    attempts: int = 0
    due: float | None = None
    paused: bool = False
    needed: bool = False
    """A running attempt waits, or has waited, for it or for a task after it."""
    ready: int | None = None
    """The number of the `handle()` in which it last became ready; None while it is not."""
    slots_seen: int = 0
    """The most slots there were while it was ready."""
    overtaken: int = 0
    """Younger starts past it that count against the limit of overtaking."""
    passed: int = 0
    """Younger starts that conflict with it, including those that do not count."""
    passed_for_slot: int = 0
    """Younger starts while it was the oldest waiter and lacked nothing."""
    beside: int = 1
    """The most tasks that waited at such a start, itself included."""
    passed_for_capacity: int = 0
    """Younger starts while it lacked nothing but capacity."""
    may_close: bool = False
    """It was passed so often that it may hold back tasks that conflict with it."""
    may_reserve: bool = False
    """It was passed so often that it may hold back tasks that take amounts it needs."""

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def exempt(self) -> bool:
        """Whether no due task holds it back: what blocks the due task may wait for this one."""
        return self.parent is not None or self.needed

    @property
    def deadlines(self) -> list[float]:
        """Its own deadline and that of its group."""
        own = self.task.deadline
        ends = [self.submitted_at + own] if isinstance(own, float) else []
        if self.group is not None and self.group.deadline is not None:
            ends.append(self.group.deadline)
        return ends

    @property
    def running(self) -> bool:
        return self.attempt is not None and not self.attempt.over and self.status is None

    def above(self) -> Iterator[ShadowAttempt]:
        """The attempts above it, nearest first, beginning with the one that submitted it."""
        attempt = self.parent
        while attempt is not None:
            yield attempt
            attempt = attempt.item.parent

    def ancestors(self) -> Iterator[ShadowTask]:
        """The tasks above it, nearest first."""
        return (attempt.item for attempt in self.above())


@dataclass(slots=True, eq=False)
class ShadowGroup:
    """Tasks under one name, submitted together or while one of them was unfinished."""

    fail_fast: bool = False
    deadline: float | None = None
    failed: bool = False
    """A member failed after fail-fast was asked for."""
    members: list[ShadowTask] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether a member is unfinished; otherwise the name is free for another group."""
        return any(member.status is None for member in self.members)


@dataclass(slots=True)
class ShadowTake:
    """An amount taken from a rate; it comes back when its window has passed."""

    at: float
    amount: int
    token: int
    request: int


@cache
def clash(a: Claim, b: Claim, fold_case: bool) -> bool:
    """Whether two claims on paths or names exclude each other; amounts are counted elsewhere."""
    if a.is_path != b.is_path:
        return False
    if a.is_path:
        return bool(conflicts(a, b, fold_case=fold_case))
    return a.resource == b.resource and Mode.EXCLUSIVE in (a.mode, b.mode)


@cache
def any_clash(many: tuple[Claim, ...], others: tuple[Claim, ...], fold_case: bool) -> bool:
    """Whether some claim here excludes some claim there."""
    return any(clash(a, b, fold_case) for a in many for b in others)


class Shadow:
    """Tasks, alive attempts, limits: everything the rules are about."""

    def __init__(
        self,
        slots: int,
        capacities: Mapping[str, int],
        rates: Mapping[str, Rate],
        fold_case: bool = False,
    ) -> None:
        self.slots = slots
        self.fold_case = fold_case
        self.first_come = False
        """With this order, a start with a higher priority does not count as overtaking."""
        self.zombies_hold_slots = True
        self.capacities = dict(capacities)
        self.most = dict(capacities)
        """The highest value that each capacity has had."""
        self._there = {"slots": slots, **capacities}
        self._levels: dict[str, int] = {}
        """What is throttled, and to how much."""
        self.quotas = dict(_quotas(rates))
        self.items: dict[str, ShadowTask] = {}
        self.open: dict[str, ShadowTask] = {}
        """The unfinished ones."""
        self.alive: dict[int, ShadowAttempt] = {}
        self.groups: dict[str, ShadowGroup] = {}
        """Those with unfinished members."""
        self.taken: dict[str, list[ShadowTake]] = {name: [] for name in self.quotas}
        self.held_until: dict[str, float] = {}
        self.paused = False
        self.draining = False
        self.shut_down = False
        self.now = 0.0
        self.ticked_at = 0.0
        self.step = 0
        self.last_token = 0
        self.timer: float | None = None
        self.reserved: list[tuple[ShadowTask, tuple[Claim, ...]]] = []
        """The tasks that hold others back since the last step, and with which claims."""
        self.passed_due: list[tuple[ShadowTask, ShadowTask]] = []
        """Starts of this turn, each with the waiting task that should have gone first."""

    # Tasks

    def unmet(self, item: ShadowTask) -> list[str]:
        """Dependencies that have not succeeded."""
        return [d for d in item.task.after if self.items[d].status is not State.SUCCEEDED]

    def needed_for(self, names: Iterable[str]) -> set[ShadowTask]:
        """The unfinished ones of these tasks and of all that has to succeed before them."""
        found: set[ShadowTask] = set()
        todo = list(names)
        while todo:
            item = self.items[todo.pop()]
            if item.status is None and item not in found:
                found.add(item)
                todo += item.task.after
        return found

    def below(self, item: ShadowTask) -> Iterator[ShadowTask]:
        """Unfinished tasks that came from it: children, their children, and so on."""
        return (other for other in self.open.values() if item in other.ancestors())

    def waiting(self) -> list[ShadowTask]:
        """Tasks that have become ready and have not been started since."""
        return [i for i in self.open.values() if i.ready is not None and not i.running]

    def state(self, item: ShadowTask) -> State:
        """The state that the task is in."""
        if item.status is not None:
            return item.status
        if item.attempt is not None and not item.attempt.over:
            return State.NEEDS_YOU if item.attempt.asks else State.RUNNING
        if item.ready is not None:
            return State.WAITING
        return State.BLOCKED if item.due is None else State.RETRYING

    def waits(self) -> Iterator[tuple[ShadowAttempt, ShadowRequest]]:
        """What attempts wait for in mid-flight."""
        for attempt in self.alive.values():
            if not attempt.over:
                for request in attempt.requests.values():
                    yield attempt, request

    # Claims

    def clash(self, many: Iterable[Claim], others: Iterable[Claim]) -> bool:
        """Whether some claim here and some claim there exclude each other."""
        return any_clash(self.exclusive(many), self.exclusive(others), self.fold_case)

    def exclusive(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """The claims on paths and plain names, which exclude rather than add up."""
        return tuple(
            c
            for c in claims
            if c.is_path or (c.resource not in self.capacities and c.resource not in self.quotas)
        )

    def counted(self, claims: Iterable[Claim]) -> list[Claim]:
        """The claims on amounts of a capacity."""
        return [c for c in claims if not c.is_path and c.resource in self.capacities]

    def rated(self, claims: Iterable[Claim]) -> list[Claim]:
        """The claims on rates."""
        return [c for c in claims if not c.is_path and c.resource in self.quotas]

    def amounts(self, claims: Iterable[Claim]) -> list[Claim]:
        """The claims on amounts, of capacities and of rates."""
        claims = tuple(claims)
        return self.counted(claims) + self.rated(claims)

    def against(self, item: ShadowTask, claims: tuple[Claim, ...]) -> list[ShadowAttempt]:
        """Alive attempts whose claims exclude these, as `item` would hold them.

        Its own attempt and those of its ancestors do not count: that is the sub-grant.
        """
        family = {item, *item.ancestors()}
        return [
            a for a in self.alive.values() if a.item not in family and self.clash(claims, a.claims)
        ]

    # Slots and rates

    def resize(self, name: str, amount: int) -> None:
        """Set a capacity, or the number of slots."""
        self._there[name] = amount
        amount = min(amount, self._levels.get(name, amount))
        if name == "slots":
            self.slots = amount
        else:
            self.capacities[name] = amount

    def throttle(self, name: str, level: int | None) -> None:
        """Allow only so much of it to be in use; None allows all of it."""
        self._levels.pop(name, None)
        if level is not None:
            self._levels[name] = level
        self.resize(name, self._there[name])

    def slots_taken(self) -> int:
        """The number of alive attempts that hold a slot."""
        return sum(map(self.is_seated, self.alive.values()))

    def is_seated(self, attempt: ShadowAttempt) -> bool:
        """Whether an attempt holds a slot."""
        return attempt.has_slot and (self.zombies_hold_slots or not attempt.over)

    def in_window(self, name: str, at: float) -> int:
        """What has been taken of a rate and has not come back at that time."""
        window = self.quotas[name].window
        return sum(t.amount for t in self.taken[name] if t.at + window > at)

    def limited(self, claims: tuple[Claim, ...], at: float) -> list[Claim]:
        """The claims on rates that do not fit into the window at that time."""
        return [
            c
            for c in self.rated(claims)
            if self.held_until.get(c.resource, 0.0) > at
            or self.in_window(c.resource, at) + c.amount > self.quotas[c.resource].amount
        ]


def _quotas(rates: Mapping[str, Rate]) -> Iterator[tuple[str, Quota]]:
    """Each quota under the name that claims use for it."""
    for name, rate in rates.items():
        if rate.requests is not None:
            yield name, rate.requests
        if rate.tokens is not None:
            yield f"{name}.tokens", rate.tokens

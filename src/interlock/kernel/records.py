"""What the kernel remembers of tasks, attempts, groups and waits in mid-flight."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from interlock.kernel.timers import Timer
from interlock.kernel.waiters import NEVER_OVERTAKEN, Amounts, Grant, Needs, Profile, Waiter
from interlock.model.claim import Claim
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task

DEFAULT_ESTIMATE = 1.0

Story = tuple[float, State, Any]
"""When a state was entered, which one, and the story before that."""


class Extras:
    """What ties a task to others and to the clock; many tasks have nothing of it."""

    # What is written here comes instead of these defaults.
    tail: float | None = None
    """How long the longest chain of tasks is that begins with this one, if others come after it."""
    priority: int | None = None
    """Another one than the task says."""
    missing = 0
    """How many dependencies have not ended yet."""
    dependents: list[Entry] | None = None
    error: ErrorRecord | None = None
    started_at: float | None = None
    """When its first attempt started, if that was in an earlier run."""
    proxy_waiter: Waiter | None = None
    """Waits in its place, since it has waited before."""
    retry_at = 0.0
    retry_timer: Timer | None = None
    deadline: Timer | None = None
    paused_since: float | None = None
    group: Group | None = None
    is_awaited = False
    """Something that runs waits for it, or for what comes after it, or has done so."""
    parent: Attempt | None = None
    children: dict[str, Entry] | None = None


_NONE = Extras()


class Entry(Waiter):
    """An unfinished task, or a finished one that an attempt of is still alive.

    It is its own waiter when it waits for the first time, which spares most tasks another object.
    Lines may still know that one when it waits again; then it needs another.
    """

    __slots__ = (
        "attempt",
        "attempts",
        "extras",
        "since",
        "state",
        "story",
        "task",
    )

    def __init__(self, task: Task, needs: Needs, profile: Profile) -> None:
        self.item = None
        self.needs = needs
        self.overtaken = NEVER_OVERTAKEN
        self.profile = profile
        self.shelf = None
        self.turn = 0
        self.writes_there = True
        self.task = task
        self.state: State | None = None
        self.since = 0.0
        self.story: Story | None = None
        self.attempts = 0
        self.attempt: Attempt | None = None
        """The attempt that is alive: there is at most one, a zombie included."""
        self.extras = _NONE

    @property
    def owner(self) -> Entry:
        return self

    @property
    def waiter(self) -> Waiter | None:
        """The wait for claims that it is in."""
        if self.item is not None:
            return self
        proxy_waiter = self.extras.proxy_waiter
        return proxy_waiter if proxy_waiter is not None and proxy_waiter.item is not None else None

    @property
    def started_at(self) -> float | None:
        """When its first attempt started, once it has ended or tries again."""
        first, story = self.extras.started_at, self.story
        if first is None:
            while story is not None:
                since, state, story = story
                if state is State.RUNNING:
                    first = since
        return first

    @property
    def own(self) -> Extras:
        """Extras to write into."""
        if self.extras is _NONE:
            self.extras = Extras()
        return self.extras

    @property
    def is_plain(self) -> bool:
        """Whether it has no extras."""
        return self.extras is _NONE

    @property
    def is_over(self) -> bool:
        """Whether it has its outcome."""
        return self.state is not None and self.state.is_end

    @property
    def guess(self) -> float:
        """How long an attempt is thought to take."""
        estimate = self.task.estimate
        return DEFAULT_ESTIMATE if estimate is None else estimate

    @property
    def tail(self) -> float:
        """How long the longest chain of tasks is that begins with this one."""
        tail = self.extras.tail
        return self.guess if tail is None else tail

    @property
    def parent(self) -> Attempt | None:
        """The attempt that submitted it."""
        return self.extras.parent

    @property
    def kin(self) -> tuple[Grant, ...]:
        """What its ancestors hold, which it may share."""
        return self.extras.parent.ancestry() if self.extras.parent is not None else ()

    @property
    def amounts(self) -> Amounts:
        """What it needs of meters."""
        return self.profile.amounts


class Attempt(Grant):
    """One try at a task, from its start until nothing of it is left; and what it holds."""

    ended = False
    """Its outcome is decided; it is only not gone yet."""
    timeout: Timer | None = None
    extra: tuple[tuple[Claim, float], ...] = ()
    """Claims that were added in mid-flight, and when."""
    requests: Mapping[int, Request] = MappingProxyType({})

    def __init__(self, entry: Entry, token: int, since: float) -> None:
        self.since = since
        self.entry = entry
        self.token = token

    @property
    def ends_at(self) -> float | None:
        estimate = self.entry.task.estimate
        return None if estimate is None else self.since + estimate

    def ancestry(self) -> tuple[Grant, ...]:
        """What this attempt and its ancestors hold: its children may share it."""
        grants: list[Grant] = []
        attempt: Attempt | None = self
        while attempt is not None:
            grants.append(attempt)
            attempt = attempt.entry.extras.parent
        return tuple(grants)


class WaitKind(StrEnum):
    """What an attempt can wait for in mid-flight."""

    CLAIMS = "claims"
    RATE = "rate"
    TASKS = "tasks"
    PERSON = "person"
    SLOT = "slot"
    """Only that: what it asked for was withdrawn."""


class Request:
    """A wait of an attempt in mid-flight; it also serves as owner of its waiter."""

    __slots__ = (
        "attempt",
        "claims",
        "number",
        "question",
        "since",
        "tasks",
        "waiter",
        "waits_for",
    )

    def __init__(self, attempt: Attempt, number: int, wait: WaitKind, since: float) -> None:
        self.attempt = attempt
        self.number = number
        self.waits_for = wait
        self.since = since
        self.claims: tuple[Claim, ...] = ()
        self.tasks: dict[str, Entry] = {}
        """Tasks that have not ended yet."""
        self.question = ""
        self.waiter: Waiter | None = None

    def is_it(self, token: int, number: int) -> bool:
        """Whether this is that request of that attempt."""
        return self.attempt.token == token and self.number == number


class ExternalHold(Grant):
    """Something outside the run, and what it holds."""

    def __init__(self, name: str, claims: tuple[Claim, ...], since: float) -> None:
        super().__init__(since)
        self.name = name
        self.claims = claims


class Group:
    """Tasks that are cancelled together."""

    __slots__ = ("deadline", "fail_fast", "members", "name")

    def __init__(self, name: str, fail_fast: bool) -> None:
        self.name = name
        self.fail_fast = fail_fast
        self.members: dict[str, Entry] = {}
        self.deadline: Timer | None = None

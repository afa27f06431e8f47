"""What the kernel keeps about tasks, attempts, groups, requests and external holds."""

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
"""What a missing estimate counts as, in seconds."""

Story = tuple[float, State, Any]
"""The states a task has been in, as a linked list: when, which one, and the story before that."""


class Extras:
    """What ties a task to others and to the clock. Many tasks have none of it."""

    # Class attributes until written: an instance holds only what was set.
    tail: float | None = None
    """The longest chain of estimates that begins with this task; None if no task comes after it."""
    priority: int | None = None
    """Set after submission; None: the task's own."""
    missing = 0
    """How many dependencies have not ended yet."""
    dependents: list[Entry] | None = None
    error: ErrorRecord | None = None
    started_at: float | None = None
    """When its first attempt started, if that was before the run was resumed."""
    proxy_waiter: Waiter | None = None
    """Waits in its place, because it has waited before."""
    retry_at = 0.0
    retry_timer: Timer | None = None
    deadline: Timer | None = None
    paused_since: float | None = None
    group: Group | None = None
    is_awaited = False
    """A running attempt waits, or has waited, for it or for a task that comes after it."""
    parent: Attempt | None = None
    children: dict[str, Entry] | None = None


_NONE = Extras()


class Entry(Waiter):
    """An unfinished task, or a finished one of which an attempt has not exited.

    It is its own waiter when it waits for the first time, which saves most tasks another object.
    Lines may still contain that wait when it waits again, so then it needs a `ProxyWaiter`.
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
        """The attempt that has not exited. There is at most one, zombies included."""
        self.extras = _NONE

    @property
    def owner(self) -> Entry:
        return self

    @property
    def waiter(self) -> Waiter | None:
        """Return its current wait for claims; None if it does not wait."""
        if self.item is not None:
            return self
        proxy_waiter = self.extras.proxy_waiter
        return proxy_waiter if proxy_waiter is not None and proxy_waiter.item is not None else None

    @property
    def started_at(self) -> float | None:
        """Return when its first attempt started, once that has ended."""
        first, story = self.extras.started_at, self.story
        if first is None:
            while story is not None:
                since, state, story = story
                if state is State.RUNNING:
                    first = since
        return first

    @property
    def own(self) -> Extras:
        """Return its own extras, to write into."""
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
        """Return how long an attempt is expected to take."""
        estimate = self.task.estimate
        return DEFAULT_ESTIMATE if estimate is None else estimate

    @property
    def tail(self) -> float:
        """Return the longest chain of estimates that begins with this task."""
        tail = self.extras.tail
        return self.guess if tail is None else tail

    @property
    def parent(self) -> Attempt | None:
        """Return the attempt that submitted it, if it is a child."""
        return self.extras.parent

    @property
    def kin(self) -> tuple[Grant, ...]:
        """Return the grants of its ancestors, whose places and amounts it may share."""
        return self.extras.parent.ancestry() if self.extras.parent is not None else ()

    @property
    def amounts(self) -> Amounts:
        """Return what it needs of meters."""
        return self.profile.amounts


class Attempt(Grant):
    """One try at a task, from its start until it has exited; and what it holds."""

    ended = False
    """Its outcome is decided; it has not exited yet."""
    timeout: Timer | None = None
    extra: tuple[tuple[Claim, float], ...] = ()
    """Claims that were added by requests, and when."""
    requests: Mapping[int, Request] = MappingProxyType({})
    """Its open requests, by number."""

    def __init__(self, entry: Entry, token: int, since: float) -> None:
        self.since = since
        self.entry = entry
        self.token = token

    @property
    def ends_at(self) -> float | None:
        estimate = self.entry.task.estimate
        return None if estimate is None else self.since + estimate

    def ancestry(self) -> tuple[Grant, ...]:
        """Return the grants of this attempt and its ancestors, which its children may share."""
        grants: list[Grant] = []
        attempt: Attempt | None = self
        while attempt is not None:
            grants.append(attempt)
            attempt = attempt.entry.extras.parent
        return tuple(grants)


class WaitKind(StrEnum):
    """What a request waits for."""

    CLAIMS = "claims"
    RATE = "rate"
    TASKS = "tasks"
    PERSON = "person"
    SLOT = "slot"
    """Nothing but the slot: what it asked for was withdrawn."""


class Request:
    """A request of a running attempt, in mid-flight. It is the owner of its waiter."""

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
        """Those of the awaited tasks that have not ended yet."""
        self.question = ""
        self.waiter: Waiter | None = None

    def is_it(self, token: int, number: int) -> bool:
        """Whether this is the request with that number of the attempt with that token."""
        return self.attempt.token == token and self.number == number


class ExternalHold(Grant):
    """What something outside the run holds."""

    def __init__(self, name: str, claims: tuple[Claim, ...], since: float) -> None:
        super().__init__(since)
        self.name = name
        self.claims = claims


class Group:
    """Tasks that can be cancelled together, share a deadline, or fail fast."""

    __slots__ = ("deadline", "fail_fast", "members", "name")

    def __init__(self, name: str, fail_fast: bool) -> None:
        self.name = name
        self.fail_fast = fail_fast
        self.members: dict[str, Entry] = {}
        self.deadline: Timer | None = None

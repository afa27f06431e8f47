"""What the kernel remembers of tasks, attempts, groups and waits in mid-flight."""

from __future__ import annotations

from enum import StrEnum

from interlock.kernel.timers import Timer
from interlock.kernel.waiters import Amounts, Grant, Needs, Waiter
from interlock.model.claim import Claim
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task


class Entry:
    """An unfinished task, or a finished one that an attempt of is still alive."""

    __slots__ = (
        "amounts",
        "attempt",
        "attempts",
        "children",
        "deadline",
        "dependents",
        "error",
        "estimate",
        "group",
        "missing",
        "needed",
        "needs",
        "parent",
        "paused_since",
        "priority",
        "retry_at",
        "retry_timer",
        "since",
        "started_at",
        "state",
        "story",
        "tail",
        "task",
        "waiter",
    )

    def __init__(self, task: Task, needs: Needs, amounts: Amounts, estimate: float) -> None:
        self.task = task
        self.needs = needs
        self.amounts = amounts
        self.estimate = estimate
        self.tail = estimate
        """How long the longest chain of tasks is that begins with this one."""
        self.priority = task.priority
        self.state: State | None = None
        self.since = 0.0
        self.story: list[float | State] | None = None
        """The states before this one, each after the time it was entered."""
        self.missing = 0
        """How many dependencies have not ended yet."""
        self.dependents: list[Entry] | None = None
        self.attempts = 0
        self.attempt: Attempt | None = None
        """The attempt that is alive: there is at most one, a zombie included."""
        self.started_at: float | None = None
        self.error: ErrorRecord | None = None
        self.waiter: Waiter | None = None
        self.retry_at = 0.0
        self.retry_timer: Timer | None = None
        self.deadline: Timer | None = None
        self.paused_since: float | None = None
        self.group: Group | None = None
        self.needed = False
        """Something that runs waits for it, or for what comes after it, or has done so."""
        self.parent: Attempt | None = None
        self.children: dict[str, Entry] | None = None

    @property
    def kin(self) -> tuple[Grant, ...]:
        """What its ancestors hold, which it may share."""
        return self.parent.ancestry() if self.parent is not None else ()


class Attempt:
    """One try at a task, from its start until nothing of it is left."""

    __slots__ = ("ended", "entry", "extra", "grant", "requests", "started_at", "timeout", "token")

    def __init__(self, entry: Entry, token: int, started_at: float, grant: Grant) -> None:
        self.entry = entry
        self.token = token
        self.started_at = started_at
        self.grant = grant
        self.ended = False
        """Its outcome is decided; it is only not gone yet."""
        self.timeout: Timer | None = None
        self.extra: tuple[tuple[Claim, float], ...] = ()
        """Claims that were added in mid-flight, and when."""
        self.requests: dict[int, Request] = {}

    def ancestry(self) -> tuple[Grant, ...]:
        """What this attempt and its ancestors hold: its children may share it."""
        grants: list[Grant] = []
        attempt: Attempt | None = self
        while attempt is not None:
            grants.append(attempt.grant)
            attempt = attempt.entry.parent
        return tuple(grants)


class Wait(StrEnum):
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
        "grant",
        "number",
        "question",
        "since",
        "tasks",
        "wait",
        "waiter",
    )

    def __init__(self, attempt: Attempt, number: int, wait: Wait, since: float) -> None:
        self.attempt = attempt
        self.grant = attempt.grant
        self.number = number
        self.wait = wait
        self.since = since
        self.claims: tuple[Claim, ...] = ()
        self.tasks: dict[str, Entry] = {}
        """Tasks that have not ended yet."""
        self.question = ""
        self.waiter: Waiter | None = None

    def is_it(self, token: int, number: int) -> bool:
        """Whether this is that request of that attempt."""
        return self.attempt.token == token and self.number == number


class Occupant:
    """Something outside the run that holds claims; the owner of its grant."""

    __slots__ = ("claims", "name", "needs", "since")

    def __init__(self, name: str, claims: tuple[Claim, ...], needs: Needs, since: float) -> None:
        self.name = name
        self.claims = claims
        self.needs = needs
        self.since = since


class Group:
    """Tasks that are cancelled together."""

    __slots__ = ("deadline", "fail_fast", "members", "name")

    def __init__(self, name: str, fail_fast: bool) -> None:
        self.name = name
        self.fail_fast = fail_fast
        self.members: dict[str, Entry] = {}
        self.deadline: Timer | None = None

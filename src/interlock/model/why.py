"""Why a task waits: every reason at once, as data."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.model.claim import Claim
from interlock.model.outcome import State


@dataclass(frozen=True, slots=True)
class UnfinishedDependency:
    """A task that has to succeed first."""

    task_id: str
    state: State
    since: float


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """Somebody holds what is claimed. `stopping`: it was told to stop and has not stopped yet."""

    claim: Claim
    holder: str
    holder_claim: Claim
    since: float
    stopping: bool
    witness: str
    """A path, or the name, that both claims mean."""


@dataclass(frozen=True, slots=True)
class ReservedClaim:
    """An older task was overtaken so often that nobody younger may start past it."""

    claim: Claim
    older: str
    older_claim: Claim
    since: float
    overtaken: int


@dataclass(frozen=True, slots=True)
class LackingCapacity:
    """Not enough is free of a counted resource (`slots` is one)."""

    resource: str
    wanted: int
    free: int
    capacity: int
    holders: tuple[tuple[str, int, float], ...]
    """Who holds how much of it since when."""
    reserved_for: str = ""


@dataclass(frozen=True, slots=True)
class SpentRate:
    """A rate has given out what it may; `until` is when there is enough again."""

    resource: str
    wanted: int
    free: int
    quota: int
    window: float
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Paused:
    """The task, or the whole run (`everything`), is paused."""

    everything: bool
    since: float


@dataclass(frozen=True, slots=True)
class Draining:
    """The run starts nothing any more."""

    since: float


@dataclass(frozen=True, slots=True)
class Backoff:
    """The next attempt comes not before `until`."""

    attempts: int
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class StillAlive:
    """The last attempt was told to stop, or has ended, and is not gone yet."""

    token: int
    since: float


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A person is asked."""

    question: str
    since: float


@dataclass(frozen=True, slots=True)
class UnfinishedChild:
    """A running task waits for its child."""

    task_id: str
    state: State
    since: float


Reason = (
    UnfinishedDependency
    | HeldClaim
    | ReservedClaim
    | LackingCapacity
    | SpentRate
    | Paused
    | Draining
    | Backoff
    | StillAlive
    | UnansweredQuestion
    | UnfinishedChild
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is where it is. `clears_at`: when the last reason is expected to be gone."""

    task_id: str
    state: State
    since: float
    reasons: tuple[Reason, ...]
    clears_at: float | None
    would_help: tuple[str, ...]

"""Why a task waits: every reason at once, as data that can say itself (`said`)."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.model.claim import Claim, Mode
from interlock.model.duration import span
from interlock.model.outcome import State
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker


def _since(state: State, seconds: float) -> str:
    """A state and for how long: `is waiting for 2 s`, `failed 2 s ago`."""
    return (
        f"{state.phrase} {span(seconds)} ago"
        if state.is_end
        else (f"{state.phrase} for {span(seconds)}")
    )


@dataclass(frozen=True, slots=True)
class UnfinishedDependency:
    """A task that has to succeed first."""

    task_id: str
    state: State
    since: float

    def said(self, now: float) -> str:
        return f"comes after {self.task_id}, which {_since(self.state, now - self.since)}"


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

    def said(self, now: float) -> str:
        stopping = ", was told to stop and is not gone" if self.stopping else ""
        held = f"{self.holder} holds {self.holder_claim} for {span(now - self.since)}{stopping}"
        if not self.claim.is_path and self.claim.resource == self.holder_claim.resource:
            alone = self.claim.mode is Mode.EXCLUSIVE
            return f"{held}; {self.claim.resource} is for one at a time" if alone else held
        return f"{held}; {self.claim} means {self.witness} too"


@dataclass(frozen=True, slots=True)
class ReservedClaim:
    """An older task was overtaken so often that nobody younger may start past it."""

    claim: Claim
    older: str
    older_claim: Claim
    since: float
    overtaken: int

    def said(self, now: float) -> str:
        return (
            f"{self.older} waits for {self.older_claim} for {span(now - self.since)}, "
            f"has been overtaken {self.overtaken} times and goes first; "
            f"{self.claim} conflicts with it"
        )


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

    def said(self, now: float) -> str:
        if self.resource == "slots" and not self.free:
            busy = ", ".join(holder for holder, _, _ in self.holders)
            return f"no slot is free: {busy} hold all {self.capacity}"
        who = ", ".join(f"{task_id} ({amount})" for task_id, amount, _ in self.holders)
        held = f", held by {who}" if who else ""
        kept = f", kept for {self.reserved_for}" if self.reserved_for else ""
        return (
            f"needs {self.wanted} {self.resource}; {self.free} of {self.capacity} free{held}{kept}"
        )


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

    def said(self, now: float) -> str:
        return (
            f"needs {self.wanted} of the rate {self.resource} "
            f"({self.quota} in {span(self.window)}); "
            f"{self.free} left, enough again in {span(self.until - now)}"
        )


@dataclass(frozen=True, slots=True)
class Paused:
    """The task, or the whole run (`everything`), is paused."""

    everything: bool
    since: float

    def said(self, now: float) -> str:
        what = "everything" if self.everything else "the task"
        return f"{what} is paused for {span(now - self.since)}"


@dataclass(frozen=True, slots=True)
class Draining:
    """The run starts nothing any more."""

    since: float

    def said(self, now: float) -> str:
        return f"the run starts nothing any more, for {span(now - self.since)}"


@dataclass(frozen=True, slots=True)
class Backoff:
    """The next attempt comes not before `until`."""

    attempts: int
    since: float
    until: float

    def said(self, now: float) -> str:
        return (
            f"attempt {self.attempts} came to nothing; "
            f"the next comes in {span(self.until - now)} at the earliest"
        )


@dataclass(frozen=True, slots=True)
class StillAlive:
    """The last attempt was told to stop, or has ended, and is not gone yet."""

    token: int
    since: float

    def said(self, now: float) -> str:
        return f"its last attempt is over for {span(now - self.since)} but not gone"


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A person is asked."""

    question: str
    since: float

    def said(self, now: float) -> str:
        return f"waits for your answer for {span(now - self.since)}: {self.question}"


@dataclass(frozen=True, slots=True)
class UnfinishedTask:
    """A running task waits for another one to end."""

    task_id: str
    state: State
    since: float

    def said(self, now: float) -> str:
        return f"waits for {self.task_id}, which {_since(self.state, now - self.since)}"


@dataclass(frozen=True, slots=True)
class StuckJournal:
    """The journal cannot be written, so that nothing can be started or told."""

    error: str
    since: float

    def said(self, now: float) -> str:
        return f"the journal cannot be written for {span(now - self.since)}: {self.error}"


@dataclass(frozen=True, slots=True)
class NotCarriedOut:
    """Nobody carries out the run at this moment: it was interrupted, or its process was ended."""

    run_id: str
    since: float

    def said(self, now: float) -> str:
        return f"nobody carries out run {self.run_id}, for {span(now - self.since)}"


Reason = (
    UnfinishedDependency
    | HeldClaim
    | ReservedClaim
    | LackingCapacity
    | SpentRate
    | OpenBreaker
    | ClosedGate
    | LoadedMachine
    | Paused
    | Draining
    | Backoff
    | StillAlive
    | UnansweredQuestion
    | UnfinishedTask
    | StuckJournal
    | NotCarriedOut
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is where it is. Print it, or look at its fields.

    Times are seconds since the run began. `clears_at`: when the last reason is expected to be gone;
    `at`: when it was asked.
    """

    task_id: str
    state: State
    since: float
    reasons: tuple[Reason, ...]
    clears_at: float | None
    suggestions: tuple[str, ...]
    at: float

    def __str__(self) -> str:
        lines = [f"{self.task_id} {_since(self.state, self.at - self.since)}"]
        lines += [f"  - {reason.said(self.at)}" for reason in self.reasons]
        if self.clears_at is not None and self.clears_at > self.at:
            lines.append(f"  expected to clear in {span(self.clears_at - self.at)}")
        lines += [f"  could help: {help}" for help in self.suggestions]
        return "\n".join(lines)

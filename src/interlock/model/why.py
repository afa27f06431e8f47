"""Why a task waits: the registry of reasons, and the explanation that lists them.

Each reason is one class; those of throttling are in `model/throttled.py`. The class is the only
place that knows about it: `kind` is its name in JSON, its fields are the fields in JSON, the first
line of its docstring is its documentation, `describe` is the sentence of `interlock why`, and
`summarize` is the few words of the live view. Views and docs/commands.md are made from these. To
add a reason, add a class and list it in `Reason`.

Times are seconds since the run began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, get_args

from interlock.model.claim import Claim, Mode
from interlock.model.duration import span
from interlock.model.naming import Naming
from interlock.model.outcome import State
from interlock.model.stable_names import stable_name
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker


def describe_state(state: State, seconds: float) -> str:
    """A state and its age: `has been waiting for 2 s`, `failed 2 s ago`."""
    if state.is_end:
        return f"{state.phrase} {span(seconds)} ago"
    lasting = "has needed you" if state is State.NEEDS_YOU else f"has been {state}"
    return f"{lasting} for {span(seconds)}"


@dataclass(frozen=True, slots=True)
class UnfinishedDependency:
    """A dependency has not succeeded yet."""

    kind: ClassVar[str] = "unfinished_dependency"

    task_id: str
    state: State
    since: float

    def describe(self, now: float) -> str:
        return f"depends on {self.task_id}, which {describe_state(self.state, now - self.since)}"

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"after {name(self.task_id)}"


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A conflicting claim is held; `stopping`: its holder was told to stop and has not exited."""

    kind: ClassVar[str] = "held_claim"

    claim: Claim
    holder: str
    holder_claim: Claim
    since: float
    stopping: bool
    witness: str
    """A path, or the name, that both claims match."""

    def describe(self, now: float) -> str:
        stopping = ", was told to stop and has not exited" if self.stopping else ""
        held = f"{self.holder} has held {self.holder_claim} for {span(now - self.since)}{stopping}"
        if not self.claim.is_path and self.claim.resource == self.holder_claim.resource:
            alone = self.claim.mode is Mode.EXCLUSIVE
            return f"{held}; {self.claim.resource} is for one task at a time" if alone else held
        return f"{held}; {self.claim} also matches {self.witness}"

    def summarize(self, now: float, name: Naming = str) -> str:
        stopping = " and has not exited" if self.stopping else ""
        return f"{name(self.holder)} holds {name(self.holder_claim)}{stopping}"


@dataclass(frozen=True, slots=True)
class ReservedClaim:
    """An older task was overtaken so often that no younger conflicting task may start first."""

    kind: ClassVar[str] = "reserved_claim"

    claim: Claim
    older: str
    older_claim: Claim
    since: float
    overtaken: int

    def describe(self, now: float) -> str:
        times = "once" if self.overtaken == 1 else f"{self.overtaken} times"
        return (
            f"{self.older} has been waiting for {self.older_claim} for {span(now - self.since)}, "
            f"has been overtaken {times} and goes first; {self.claim} conflicts with it"
        )

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"{name(self.older)} goes first for {name(self.older_claim)}"


@dataclass(frozen=True, slots=True)
class NoCapacity:
    """Too little of a counted resource is free (`slots` is one)."""

    kind: ClassVar[str] = "no_capacity"

    resource: str
    wanted: int
    free: int
    capacity: int
    holders: tuple[tuple[str, int, float], ...] = field(
        metadata={"items": ("task_id", "amount", "since")}
    )
    """Which task has held how much of it, and since when."""
    reserved_for: str = ""

    def describe(self, now: float) -> str:
        if self._is_slots and not self.free and self.holders:
            busy = ", ".join(holder for holder, _, _ in self.holders)
            if self.capacity == 1:
                return f"the only {self._slot} is busy: {busy}"
            return f"all {self.capacity} {self.resource} are busy: {busy}"
        holders = ", ".join(f"{task_id} ({amount})" for task_id, amount, _ in self.holders)
        held = f", held by {holders}" if holders else ""
        return f"needs {self._wanted}; {self.free} of {self.capacity} free{held}{self._kept(str)}"

    def summarize(self, now: float, name: Naming = str) -> str:
        if self._is_slots and not self.free and self.capacity == 1:
            return f"the only {self._slot} is busy"
        if self._is_slots and not self.free:
            return f"all {self.capacity} {self.resource} are busy"
        return f"needs {self._wanted}: {self.free} free{self._kept(name)}"

    @property
    def _is_slots(self) -> bool:
        return self.resource == "slots" or self.resource.startswith("slots of ")

    @property
    def _slot(self) -> str:
        return self.resource.replace("slots", "slot", 1)

    @property
    def _wanted(self) -> str:
        one_slot = self._is_slots and self.wanted == 1
        return f"{self.wanted} {self._slot if one_slot else self.resource}"

    def _kept(self, name: Naming) -> str:
        return f", reserved for {name(self.reserved_for)}" if self.reserved_for else ""


@dataclass(frozen=True, slots=True)
class RateLimited:
    """A rate is used up; `until` is when there is enough again."""

    kind: ClassVar[str] = "rate_limited"

    resource: str
    wanted: int
    free: int
    quota: int
    window: float
    since: float
    until: float

    def describe(self, now: float) -> str:
        return (
            f"needs {self.wanted} of the rate {self.resource} "
            f"({self.quota} in {span(self.window)}); "
            f"{self.free} left, enough again in {span(self.until - now)}"
        )

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"rate {self.resource}: enough again in {span(self.until - now)}"


@dataclass(frozen=True, slots=True)
class Paused:
    """The task, or the whole run (`everything`), is paused."""

    kind: ClassVar[str] = "paused"

    everything: bool
    since: float

    def describe(self, now: float) -> str:
        what = "the run" if self.everything else "the task"
        return f"{what} has been paused for {span(now - self.since)}"

    def summarize(self, now: float, name: Naming = str) -> str:
        return "the run is paused" if self.everything else "paused"


@dataclass(frozen=True, slots=True)
class Draining:
    """The run is stopping: it starts nothing more."""

    kind: ClassVar[str] = "draining"

    since: float

    def describe(self, now: float) -> str:
        return f"the run has been stopping for {span(now - self.since)}: it starts nothing more"

    def summarize(self, now: float, name: Naming = str) -> str:
        return "the run is stopping"


@dataclass(frozen=True, slots=True)
class Backoff:
    """The last attempt failed; the next one starts at `until` at the earliest."""

    kind: ClassVar[str] = "backoff"

    attempts: int
    since: float
    until: float

    def describe(self, now: float) -> str:
        return (
            f"attempt {self.attempts} failed; "
            f"the next one starts in {span(self.until - now)} at the earliest"
        )

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"attempt {self.attempts + 1} in {span(self.until - now)}"


@dataclass(frozen=True, slots=True)
class PreviousAttemptAlive:
    """The previous attempt ended, or was told to stop, and has not exited yet."""

    kind: ClassVar[str] = "previous_attempt_alive"

    token: int
    since: float

    def describe(self, now: float) -> str:
        return f"its previous attempt has been over for {span(now - self.since)} but has not exited"

    def summarize(self, now: float, name: Naming = str) -> str:
        return "its previous attempt has not exited"


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """The task has asked a person a question."""

    kind: ClassVar[str] = "unanswered_question"

    question: str
    since: float

    def describe(self, now: float) -> str:
        return f"has been waiting for your answer for {span(now - self.since)}: {self.question}"

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"needs your answer: {self.question}"


@dataclass(frozen=True, slots=True)
class UnfinishedTask:
    """The running task waits for another one to end."""

    kind: ClassVar[str] = "unfinished_task"

    task_id: str
    state: State
    since: float

    def describe(self, now: float) -> str:
        return f"waits for {self.task_id}, which {describe_state(self.state, now - self.since)}"

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"waits for {name(self.task_id)}, which {self.state.phrase}"


@dataclass(frozen=True, slots=True)
class StuckJournal:
    """The journal cannot be written, so nothing can be started or reported."""

    kind: ClassVar[str] = "stuck_journal"

    error: str
    since: float

    def describe(self, now: float) -> str:
        return f"the journal has not been writable for {span(now - self.since)}: {self.error}"

    def summarize(self, now: float, name: Naming = str) -> str:
        return f"the journal cannot be written: {self.error}"


@dataclass(frozen=True, slots=True)
class NoCoordinator:
    """The run was interrupted, or its process was killed: no process carries it out."""

    kind: ClassVar[str] = "no_coordinator"

    run_id: str
    since: float

    def describe(self, now: float) -> str:
        return f"run {self.run_id} was interrupted {span(now - self.since)} ago"

    def summarize(self, now: float, name: Naming = str) -> str:
        return "the run was interrupted"


Reason = (
    UnfinishedDependency
    | HeldClaim
    | ReservedClaim
    | NoCapacity
    | RateLimited
    | OpenBreaker
    | ClosedGate
    | LoadedMachine
    | Paused
    | Draining
    | Backoff
    | PreviousAttemptAlive
    | UnansweredQuestion
    | UnfinishedTask
    | StuckJournal
    | NoCoordinator
)

REASONS: tuple[type[Reason], ...] = get_args(Reason)
"""Every kind of reason, in the order of the documentation."""


@stable_name("data.explanation")
@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is where it is. Print it, or look at its fields.

    `clears_at`: when the last reason is expected to be gone; `at`: when the question was asked.
    """

    task_id: str
    state: State
    since: float
    reasons: tuple[Reason, ...]
    clears_at: float | None
    suggestions: tuple[str, ...]
    at: float

    def __str__(self) -> str:
        lines = [f"{self.task_id} {describe_state(self.state, self.at - self.since)}"]
        lines += [f"  - {reason.describe(self.at)}" for reason in self.reasons]
        if self.clears_at is not None and self.clears_at > self.at:
            lines.append(f"  expected to clear in {span(self.clears_at - self.at)}")
        lines += [f"  suggestion: {each}" for each in self.suggestions]
        return "\n".join(lines)

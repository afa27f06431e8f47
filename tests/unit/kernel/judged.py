"""The real kernel, with the judge looking on after every step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from interlock.errors import UsageError
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import (
    Deny,
    Instruction,
    Refused,
    Resume,
    SetTimer,
    Settle,
    Start,
    Stop,
)
from interlock.kernel.kernel import Kernel
from interlock.model.claim import Claim
from interlock.model.limits import Rate
from interlock.model.outcome import ErrorRecord, State
from interlock.model.progress import Progress
from interlock.model.task import Task
from interlock.model.why import Explanation
from tests.simulation.kernel.oracle import Oracle

BOOM = ErrorRecord("Boom", "it went wrong")
FATAL = ErrorRecord("Fatal", "no use trying again", retryable=False)


class Judged:
    """Drives one kernel on a clock of its own; every `handle()` is checked by the oracle."""

    def __init__(
        self,
        *,
        slots: int = 8,
        capacities: Mapping[str, int] | None = None,
        rates: Mapping[str, Rate] | None = None,
        protected: Iterable[str] = (),
        first_token: int = 1,
        fold_case: bool = False,
        first_come: bool = False,
        zombies_hold_slots: bool = True,
    ) -> None:
        self.kernel = Kernel(
            slots=slots,
            capacities=capacities,
            rates=rates,
            protected=protected,
            first_token=first_token,
            fold_case=fold_case,
            first_come=first_come,
            zombies_hold_slots=zombies_hold_slots,
        )
        self.oracle = Oracle(
            slots,
            capacities,
            rates,
            fold_case=fold_case,
            first_come=first_come,
            zombies_hold_slots=zombies_hold_slots,
        )
        self.now = 0.0
        self.timer: float | None = None
        self.tokens: dict[str, int] = {}
        """The token of the last attempt of every task."""
        self.starts: list[tuple[float, str]] = []
        """Every start, with its time."""
        self.taken: list[str] = []
        """Every task that was submitted."""

    # -- stimuli ------------------------------------------------------------------------------

    def handle(self, stimulus: s.Stimulus, at: float | None = None) -> list[Instruction]:
        """One step: what the kernel says to it, judged."""
        self.now = self.now if at is None else at
        told = self.kernel.handle(stimulus, self.now)
        if isinstance(stimulus, s.Submit) and not refused(told):
            self.taken += [task.id for task in stimulus.tasks]
        self.oracle.observe(stimulus, self.now, told, self.kernel)
        for each in told:
            if isinstance(each, Start):
                self.tokens[each.task_id] = each.token
                self.starts.append((self.now, each.task_id))
            elif isinstance(each, SetTimer):
                self.timer = each.at
        return told

    def submit(self, *tasks: Task, at: float | None = None, **options: Any) -> list[Instruction]:
        return self.handle(s.Submit(tasks, **options), at)

    def child(self, parent: str, *tasks: Task, at: float | None = None) -> list[Instruction]:
        return self.submit(*tasks, at=at, parent=parent, token=self.tokens[parent])

    def ends(
        self,
        task_id: str,
        status: State = State.SUCCEEDED,
        at: float | None = None,
        **details: Any,
    ) -> list[Instruction]:
        """The last attempt of a task ends, and is gone unless told otherwise."""
        return self.handle(s.Ended(task_id, self.tokens[task_id], status, **details), at)

    def fails(self, task_id: str, at: float | None = None, **details: Any) -> list[Instruction]:
        return self.ends(task_id, State.FAILED, at, **{"error": BOOM, **details})

    def gone(self, task_id: str, at: float | None = None) -> list[Instruction]:
        return self.handle(s.Gone(task_id, self.tokens[task_id]), at)

    def extend(
        self, task_id: str, *claims: Claim, request: int = 1, at: float | None = None
    ) -> list[Instruction]:
        return self.handle(s.Extend(task_id, self.tokens[task_id], request, claims), at)

    def take(
        self, task_id: str, *claims: Claim, request: int = 1, at: float | None = None
    ) -> list[Instruction]:
        return self.handle(s.Take(task_id, self.tokens[task_id], request, claims), at)

    def awaits(
        self, task_id: str, *tasks: str, request: int = 1, at: float | None = None
    ) -> list[Instruction]:
        return self.handle(s.AwaitTasks(task_id, self.tokens[task_id], request, tasks), at)

    def asks(self, task_id: str, request: int = 1, at: float | None = None) -> list[Instruction]:
        return self.handle(s.Ask(task_id, self.tokens[task_id], request, "Really?"), at)

    def withdraws(
        self, task_id: str, request: int = 1, at: float | None = None
    ) -> list[Instruction]:
        return self.handle(s.Withdraw(task_id, self.tokens[task_id], request), at)

    def until(self, time: float) -> list[Instruction]:
        """Let the clock run, and tick whenever the kernel asked for it."""
        told: list[Instruction] = []
        while self.timer is not None and self.timer <= time:
            self.now, self.timer = max(self.now, self.timer), None
            told += self.handle(s.Tick())
        self.now = time
        return told

    def refuses(self, stimulus: s.Stimulus, error: type[UsageError], match: str) -> UsageError:
        """The kernel raises that error, and nothing that can be seen of it has changed."""
        before = self.picture()
        with pytest.raises(error, match=match) as caught:
            self.kernel.handle(stimulus, self.now)
        assert type(caught.value) is error
        assert self.picture() == before
        return caught.value

    # -- what can be seen ---------------------------------------------------------------------

    def state(self, task_id: str) -> State:
        return self.kernel.state(task_id)

    def why(self, task_id: str) -> Explanation:
        return self.kernel.why(task_id)

    def progress(self) -> Progress:
        return self.kernel.progress()

    def running(self) -> list[str]:
        """Tasks of which an attempt is alive and holds a slot, oldest start first."""
        return [each.task_id for each in self.kernel.alive() if each.holds_slot]

    def holders(self) -> list[str]:
        """Tasks of which an attempt is alive, with or without a slot, zombies included."""
        return [each.task_id for each in self.kernel.alive()]

    def picture(self) -> object:
        """Everything that can be seen of the kernel."""
        kernel = self.kernel
        return (
            [(name, kernel.state(name)) for name in self.taken],
            [kernel.why(name).reasons for name in self.taken],
            kernel.progress(),
            list(kernel.alive()),
            list(kernel.reservations()),
        )


# -- reading instructions ---------------------------------------------------------------------


def started(told: Iterable[Instruction]) -> list[str]:
    return [each.task_id for each in told if isinstance(each, Start)]


def stopped(told: Iterable[Instruction]) -> list[str]:
    return [each.task_id for each in told if isinstance(each, Stop)]


def settled(told: Iterable[Instruction]) -> dict[str, State]:
    return {each.task_id: each.status for each in told if isinstance(each, Settle)}


def causes(told: Iterable[Instruction]) -> dict[str, str]:
    return {each.task_id: each.cause for each in told if isinstance(each, Settle)}


def resumed(told: Iterable[Instruction]) -> list[str]:
    return [each.task_id for each in told if isinstance(each, Resume)]


def denied(told: Iterable[Instruction]) -> list[str]:
    return [each.task_id for each in told if isinstance(each, Deny)]


def refused(told: Iterable[Instruction]) -> list[str]:
    return [each.stimulus for each in told if isinstance(each, Refused)]

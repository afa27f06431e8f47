"""The kernel: `handle(stimulus, now)` returns instructions.

It is pure: no clock, no randomness, no I/O. The same stimuli at the same times give the same
instructions, so one kernel serves production, simulation and replay.

One call of `handle` is one *turn*: the stimulus changes the run, what follows from it for other
tasks is worked through (`KernelRun.drain_agenda`), and only then admission starts what can start.
So no start is decided on a picture that the same stimulus is about to change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from interlock.errors import ClockWentBack, InvalidOption, UsageError
from interlock.kernel import stimuli as s
from interlock.kernel.controls import Controls
from interlock.kernel.explain import explain
from interlock.kernel.external_holds import ExternalHolds
from interlock.kernel.instructions import Instruction, SetTimer
from interlock.kernel.records import Attempt
from interlock.kernel.run import KernelRun
from interlock.kernel.table import Table
from interlock.model.claim import Claim, uses
from interlock.model.limits import Rate
from interlock.model.outcome import State
from interlock.model.progress import Progress
from interlock.model.task import Task
from interlock.model.why import Explanation


class Alive(NamedTuple):
    """An attempt that has not exited: it holds claims, and a slot unless it lends that out."""

    task_id: str
    token: int
    zombie: bool
    holds_slot: bool
    since: float


class Reservation(NamedTuple):
    """Claims that no younger task, or amounts that no other one, may take before this starts."""

    task_id: str
    claims: tuple[Claim, ...]


class Kernel:
    """Decides what may start; owns the lifecycle of every task of one run."""

    def __init__(
        self,
        *,
        slots: int,
        capacities: Mapping[str, int] | None = None,
        rates: Mapping[str, Rate] | None = None,
        protected: Iterable[str] = (),
        first_token: int = 1,
        fold_case: bool = False,
        first_come: bool = False,
        zombies_hold_slots: bool = True,
        max_ended: int | None = None,
    ) -> None:
        table = Table(slots, capacities or {}, rates or {}, protected, fold_case)
        self._run = run = KernelRun(table, first_token, first_come, zombies_hold_slots, max_ended)
        self._controls = controls = Controls(run)
        external_holds = ExternalHolds(run)
        self._announced: float | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            s.Submit: run.submit,
            s.Ended: run.ended,
            s.Gone: run.gone,
            s.Reports: run.reports,
            s.Extend: run.requests.extend,
            s.Take: run.requests.take,
            s.Used: run.requests.used,
            s.AwaitTasks: run.requests.await_tasks,
            s.Ask: run.requests.ask,
            s.Answer: run.requests.answer,
            s.Withdraw: run.requests.withdraw,
            s.Cancel: controls.cancel,
            s.CancelGroup: controls.cancel_group,
            s.SetCapacity: controls.set_capacity,
            s.Throttle: controls.throttle,
            s.Define: controls.define,
            s.SetRate: controls.set_rate,
            s.HoldRate: controls.hold_rate,
            s.Occupy: external_holds.occupy,
            s.Vacate: external_holds.vacate,
            s.Recall: run.restorer.recall,
            s.Spend: run.restorer.spend,
            s.Pause: controls.pause,
            s.Unpause: controls.resume,
            s.Prioritize: controls.prioritize,
            s.Tick: self._tick,
            s.Drain: controls.drain,
            s.Shutdown: controls.shutdown,
        }

    def handle(self, stimulus: s.Stimulus, now: float) -> list[Instruction]:
        """Take in what happened at a time, and return what to do about it, in order.

        A UsageError means that the stimulus asked for something impossible and changed nothing.
        """
        run = self._run
        if not run.now <= now < math.inf:
            raise ClockWentBack(
                f"time {now} came after {run.now}; time must not go back, and be finite"
            )
        handler = self._handlers.get(type(stimulus))
        if handler is None:
            raise InvalidOption(f"{stimulus!r} is not a stimulus; see interlock.kernel.stimuli")
        before = run.now
        run.now = run.table.now = now
        run.admission.turn += 1
        out: list[Instruction] = []
        run.out = out
        try:
            handler(stimulus)
        except UsageError:
            # Handlers check everything before they change anything, so only the time is undone.
            run.now = run.table.now = before
            raise
        if run.agenda:
            run.drain_agenda()
        self._admit()
        if self._controls.rates:
            self._controls.watch_rates()
        if run.max_ended is not None:
            run.forget_oldest(run.max_ended)
        # One timer for all: the runtime hears of it only when the earliest time has changed.
        upcoming = run.timers.next()
        if upcoming != self._announced:
            self._announced = upcoming
            out.append(SetTimer(upcoming))
        run.out = []  # The list is the caller's now.
        return out

    def _admit(self) -> None:
        run = self._run
        choose = run.admission.choose
        while (waiter := choose()) is not None:
            if waiter.profile.is_request:
                run.requests.granted(waiter.owner)
            else:
                run.start(waiter)

    def _tick(self, stimulus: s.Tick) -> None:
        for timer in self._run.timers.due(self._run.now):
            timer.action(self._run.now)
            self._run.drain_agenda()

    def check(self, task: Task) -> None:
        """Raise for claims of a task that could never be granted, as a submission would."""
        self._run.table.check(task.id, task.claims)

    def state(self, task_id: str) -> State:
        """Return the state of a task of this run."""
        end = self._run.ends.get(task_id)
        if end is not None:
            return end
        state = self._run.unfinished(task_id).state
        assert state is not None
        return state

    def why(self, task_id: str, now: float | None = None) -> Explanation:
        """Return every reason why a task is not running, or what it waits for in mid-flight."""
        return explain(self._run, task_id, self._run.now if now is None else now)

    def has_ended(self, task_id: str) -> bool:
        """Whether a task with that id has ended and has not been forgotten (`max_ended`)."""
        return task_id in self._run.ends

    def progress(self) -> Progress:
        """Return how many tasks are in each state."""
        return Progress(**self._run.counts, zombies=len(self._run.admission.zombies))

    def anyone_waits(self) -> bool:
        """Whether any task or request waits for claims, amounts or a slot."""
        run = self._run
        return bool(run.counts[State.WAITING]) or any(
            request.waiter is not None for request in run.requests.waiting
        )

    def alive(self) -> Iterator[Alive]:
        """Yield the attempts of this run that have not exited, zombies included."""
        for each in self._run.admission.grants:
            if isinstance(each, Attempt):
                task_id = each.entry.task.id
                yield Alive(task_id, each.token, each.zombie, each.holds_slot, each.since)

    def external_holds(self) -> Iterator[tuple[str, tuple[Claim, ...]]]:
        """Yield what attempts of earlier runs still hold, each with its name."""
        for each in self._run.external_holds.values():
            yield each.name, each.claims

    def reservations(self) -> Iterator[Reservation]:
        """Yield the waiting tasks that have been overtaken so often that claims are reserved."""
        for waiter in self._run.admission.due_waiters:
            if waiter.overtaken.is_due:
                yield Reservation(waiter.owner.task.id, waiter.owner.task.claims)
        for waiter in self._run.admission.reserved:
            amounts = waiter.profile.amounts
            held = tuple(uses(m.name, max(1, n)) for m, n in amounts if m.reserved is waiter)
            yield Reservation(waiter.owner.task.id, held)

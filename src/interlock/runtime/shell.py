"""The shell around the kernel: takes in what happens, journals it, then carries out what follows.

    stimulus ──▶ kernel ──▶ instructions, events          at once, and without any effect
                                  │
                    end of the turn of the loop
                                  ▼
                     journal (one transaction) ──▶ starts, stops, outcomes, answers

Only the thread of the event loop comes in here; other threads come through the `door`.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from interlock.errors import (
    InterlockError,
    InvalidOption,
    NotRunning,
    ShuttingDown,
    UnknownTask,
    UnreadableJournal,
    UsageError,
)
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel
from interlock.model.event import Kind
from interlock.model.limits import Breaker, Rate
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.usage import NO_USAGE, Usage
from interlock.model.why import Explanation, StuckJournal
from interlock.runtime.attempts import Attempts
from interlock.runtime.claim_paths import Workspace
from interlock.runtime.conditions import Conditions
from interlock.runtime.context import TaskContext
from interlock.runtime.estimates import Estimates
from interlock.runtime.event_stream import EventStream
from interlock.runtime.handle import Handle, Running
from interlock.runtime.limits.breakers import Breakers
from interlock.runtime.limits.options import Limits
from interlock.runtime.limits.rates import Rates
from interlock.runtime.limits.slots import SlotControl
from interlock.runtime.log import Log
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.ports import Ports
from interlock.runtime.project import ProjectAgents
from interlock.runtime.recovery.origin import Origin
from interlock.runtime.recovery.remembered import Remembered
from interlock.runtime.requests import AttemptRequests
from interlock.runtime.submission.batch import Prepared, submit
from interlock.runtime.submission.generations import Generations
from interlock.runtime.turn import Decision, Turn

_LATE = 0.05
"""A timer that comes so many seconds late finds a loop that was blocked."""


class Shell:
    """Owns one kernel, and what is known of its tasks outside of it, for the time of one run."""

    def __init__(
        self,
        kernel: Kernel,
        origin: Origin,
        workspace: Workspace,
        ports: Ports,
        grace: float,
        limits: Limits,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop_thread = LoopThread(self.loop, self._in_one_turn)
        self.workspace = workspace
        self.run_id = run_id = origin.run_id
        self.rates = Rates(limits.rates, self.take_in, self.now)
        self.kernel = kernel
        self.handles: dict[str, Handle[Any]] = {}
        self.max_outcomes: int | None = None
        """The outcomes of so many tasks are kept; None: of all."""
        self._ended: deque[str] = deque()
        self.unsettled = 0
        self.broken: BaseException | None = None
        """A bug of ours. Nothing is decided after it."""
        self.suspended = False
        """A signal came: nothing more is decided, and the run can be taken up again."""
        self.journal = origin.journal
        self.disk = origin.disk
        self.estimates = None if origin.disk is None else Estimates(origin.disk.read.estimate)
        self._trouble: tuple[float, Exception] | None = None
        """Since when the journal cannot be written, and why."""
        self.is_durable = origin.disk is not None
        self.epoch = origin.epoch
        """When the run began, in seconds since 1970."""
        self._zero = self.loop.time() - origin.elapsed
        self.redaction = origin.redaction
        self.log = Log(run_id, origin.redaction)
        self.events = EventStream(origin.journal, self.log, self.epoch)
        self.attempts = Attempts(self, ports.chance, grace)
        self.requests = AttemptRequests(self)
        self.slots = SlotControl(self, ports.load, limits.auto, limits.gate)
        self.breakers = Breakers(self, limits.breakers)
        self._reports: list[s.Ended | s.Gone] = []
        self._usage: dict[str, Usage] = {}
        self._todo: list[Decision] = []
        self._scheduled = False
        self._deciding = False
        self._committing = False
        self._timer: asyncio.TimerHandle | None = None
        self.conditions = Conditions(self.loop)
        self.keys: dict[str, Handle[Any]] = {}
        """Handles by idempotency key."""
        self.passed_over = origin.passed_over
        self.remembered: Remembered | None = origin.remembered
        """What the journal knows of earlier runs, if there is one that outlives the process."""
        self.agents: ProjectAgents | None = None
        """Those of the project file, if there is one."""
        self.ids = Generations(self._has_submitted)
        self._groups = 0

    # -- taking in --------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the run began: the kernel's time."""
        return self.loop.time() - self._zero

    def wall(self) -> float:
        """Seconds since 1970."""
        return self.epoch + self.now()

    def take_in(self, stimulus: s.Stimulus) -> None:
        """Let the kernel decide. A UsageError means that nothing was changed."""
        if self.broken is not None:
            raise ended_by(self.run_id, self.broken) from self.broken
        if self.events.closed:
            raise NotRunning(f"run {self.run_id} is over; enter a new Runtime")
        if self.suspended:
            raise ShuttingDown(f"run {self.run_id} was interrupted; take it up with resume=True")
        if self._deciding:
            # A signal handler of the program runs on this very thread, between any two lines.
            raise UsageError(
                "called in the middle of a decision, as from a signal handler; "
                "hand it over with loop.call_soon_threadsafe()"
            )
        if self.slots.is_watching:
            self.slots.look()
        now = self.now()
        self._deciding = True
        try:
            decisions: list[Decision] = list(self.kernel.handle(stimulus, now))
        finally:
            self._deciding = False
        for index, each in enumerate(decisions):
            if isinstance(each, do.Settle):
                decisions[index] = self._outcome(each)
            elif isinstance(each, do.Stop):
                self.attempts.close(each.token)
        self.events.turn.decided(now, stimulus, decisions)
        self._todo += decisions
        if self.breakers:
            self.breakers.decided(stimulus, decisions)
        if self.slots.is_watching:
            self.slots.keep_looking()
        self._schedule()

    def report(self, report: s.Ended | s.Gone) -> None:
        """What attempts report in one turn of the loop goes to the kernel together."""
        self._reports.append(report)
        self._schedule()

    def told(self, context: TaskContext, kind: Kind, data: Any) -> None:
        """An agent tells of itself: nothing that the kernel would have to know."""
        context.check_open()
        task_id = context.task.id
        if isinstance(data, Usage):
            self.add_usage(task_id, data)
        self.note(kind, task_id, data)

    def add_usage(self, task_id: str, used: Usage) -> None:
        """What attempts at a task have used up; its outcome will have the sum."""
        if used != NO_USAGE:
            self._usage[task_id] = self._usage.get(task_id, NO_USAGE).plus(used)

    def note(self, kind: Kind, task_id: str, data: Any = None) -> None:
        """Put something into the record that is none of the kernel's business."""
        self.events.turn.told(self.now(), kind, task_id, data)
        self._schedule()

    def _outcome(self, settle: do.Settle) -> Outcome[Any]:
        status, started, ended = settle.status, settle.started_at, settle.ended_at
        ending = self.attempts.endings.pop(settle.task_id, None)
        result = exception = None
        if ending is not None and status is State.SUCCEEDED:
            result = ending.value
        elif ending is not None and status is State.FAILED:
            exception = ending.exception
        return Outcome(
            settle.task_id,
            status,
            result,
            settle.error,
            settle.attempts,
            None if started is None else datetime.fromtimestamp(self.epoch + started, UTC),
            datetime.fromtimestamp(self.epoch + ended, UTC),
            0.0 if started is None else ended - started,
            self._usage.pop(settle.task_id, NO_USAGE),
            (),
            settle.cause,
            exception,
        )

    def submit(
        self,
        tasks: Sequence[Task | Prepared],
        context: Context,
        parent: TaskContext | None = None,
        group: str = "",
        fail_fast: bool = False,
        deadline: float | None = None,
    ) -> list[Handle[Any]]:
        """Take in all of these tasks or, with an error, none."""
        return submit(self, tasks, context, parent, group, fail_fast, deadline)

    # -- the turn of the loop ---------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._turn)

    def _in_one_turn(self, work: Callable[[], None]) -> None:
        """Do something, and at once what follows from it."""
        if self._scheduled:
            work()
            return
        self._scheduled = True
        try:
            work()
        finally:
            self._turn()

    def _turn(self) -> None:
        if self.broken is not None or self.events.closed:
            return
        if self.suspended:
            self._reports = []
        try:
            self._hear_reports()
            if not self._committing:
                self._commit()
        except BaseException as error:  # noqa: BLE001 - a bug of ours must end the run, not hang it
            self.break_off(error)
        self._scheduled = False
        self.conditions.look()
        if self._reports or (not self._committing and (self._todo or self.events.turn)):
            self._schedule()

    def _hear_reports(self) -> None:
        if self._reports:
            reports, self._reports = self._reports, []
            if self.breakers:
                self.breakers.reported(reports)
            self.take_in(s.Reports(tuple(reports)))

    def _commit(self) -> None:
        """Journal what was decided; then, and only then, do it."""
        turn = self.events.take()
        todo, self._todo = self._todo, []
        pending = self.events.append(turn) if turn else None
        if pending is None:
            self._perform(turn, todo)
        else:
            self._committing = True
            commit = asyncio.ensure_future(pending)
            commit.add_done_callback(partial(self._committed, turn, todo))

    def _committed(self, turn: Turn, todo: list[Decision], commit: asyncio.Future[None]) -> None:
        self._committing = False
        try:
            commit.result()
            if self.broken is None:  # nothing begins in a run that has been ended meanwhile
                self._perform(turn, todo)
        except BaseException as error:  # noqa: BLE001 - as in _turn
            self.break_off(error)
        self.conditions.look()
        self._schedule()

    def _perform(self, turn: Turn, todo: list[Decision]) -> None:
        for each in todo:
            if isinstance(each, do.Start):
                if not self.suspended:  # otherwise it is cut off before it began
                    self.attempts.start(each)
            elif isinstance(each, Outcome):
                self.unsettled -= 1
                self.handles[each.task_id].settle(each)
                if self.max_outcomes is not None:
                    self._forget_before(each.task_id)
            elif isinstance(each, do.Stop):
                self.attempts.stop(each)
            elif isinstance(each, do.Resume):
                self.attempts.extend(each.token, each.claims)
                self.requests.resume(each.token, each.request)
            elif isinstance(each, do.Deny):
                self.requests.deny(each.token, each.request, each.task_id, each.reason)
            elif isinstance(each, do.SetTimer):
                self._set_timer(each.at)
        if turn:
            self.events.committed = turn.last
            self.events.publish(turn)

    def suspend(self) -> None:
        """Decide nothing more: what is unfinished stays so in the journal, to be taken up again.

        What runs is cut off by our own will, which is not held against it.
        """
        if not self.suspended and self.broken is None:
            self._hear_reports()
            for each in self.kernel.alive():
                if not each.zombie:
                    self.note(Kind.INTERRUPTED, each.task_id, {"token": each.token, "by": "signal"})
            self.suspended = True
            self.attempts.stop_all()
            over = ShuttingDown(f"run {self.run_id} was interrupted")
            self.requests.fail_all(over)
            for handle in self.handles.values():
                handle.give_up(over)
            self.conditions.look()

    def warn_of_unbound(self, unbound: tuple[str, ...]) -> None:
        """Tell of unfinished tasks that the program has not brought again; the run stays open."""
        self.log.unbound(unbound)

    def break_off(self, error: BaseException) -> None:
        """A bug of ours, or the journal is lost: tell everybody who waits, and stop what runs."""
        if self.broken is not None:
            return
        self.broken = error
        self.log.broken(error)
        self.attempts.stop_all()
        told = ended_by(self.run_id, error)
        told.__cause__ = error
        self.requests.fail_all(told)
        for handle in self.handles.values():
            handle.give_up(told)
        self.events.close()
        self.conditions.look()

    # -- time -------------------------------------------------------------------------------

    def _set_timer(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if at is not None:
            when = self._zero + at
            while when - self._zero < at:  # rounded down; the kernel would find it too early
                when = math.nextafter(when, math.inf)
            self._timer = self.loop.call_at(when, self._tick, at)

    def _tick(self, at: float | None) -> None:
        if self.broken is not None or self.suspended:
            return
        if at is not None and self.now() < at:  # loops may be early, by the resolution of a clock
            self._set_timer(at)
            return
        if at is not None and self.now() - at > _LATE:
            # The loop was blocked. What has ended meanwhile is about to say so, and must not be
            # taken for late because somebody else was slow. Once: a loop may be blocked for ever.
            self._timer = self.loop.call_later(_LATE / 10, self._tick, None)
            return
        try:
            self.take_in(s.Tick())
        except BaseException as error:  # noqa: BLE001 - as in _turn
            self.break_off(error)

    def later(self, delay: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Do something after a time, unless the run is over by then."""
        return self.loop.call_later(delay, self._now_is_later, action)

    def _now_is_later(self, action: Callable[[], None]) -> None:
        if self.broken is not None or self.suspended or self.events.closed:
            return
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - as in _turn
            self.break_off(error)

    # -- limits -----------------------------------------------------------------------------

    def set_limit(self, name: str, limit: Rate | Breaker) -> None:
        """Change a rate or a breaker, or add one."""
        if isinstance(limit, Breaker):
            self.breakers.set(name, limit)
        elif isinstance(limit, Rate):
            self.rates.set(name, limit)
        else:
            raise InvalidOption(f"the limit {name!r} is {limit!r}; it can be a Rate or a Breaker")

    # -- waiting for the end ----------------------------------------------------------------

    def all_settled(self) -> bool:
        """Whether every task has its outcome, or will have none in this process."""
        return not self.unsettled or self.broken is not None or self.suspended

    def is_idle(self) -> bool:
        """Whether nothing is left of any attempt, and all have been heard."""
        return not self.attempts.alive and not self._reports

    def is_quiet(self) -> bool:
        """Whether every task has its outcome and nothing is left of any attempt."""
        return self.all_settled() and not self.attempts.alive

    def nothing_to_commit(self) -> bool:
        """Whether all that was decided is in the journal and was done."""
        if self.broken is not None:
            return not self._committing
        return not (self._todo or self._reports or self.events.turn or self._committing)

    # -- looking ----------------------------------------------------------------------------

    def outcome_of(self, task_id: str) -> Outcome[Any]:
        """The outcome of a task that has ended."""
        outcome = self.handle_of(task_id).outcome
        assert outcome is not None, f"{task_id!r} has not ended"
        return outcome

    def _forget_before(self, task_id: str) -> None:
        """One more has ended: of a run that lasts, the oldest outcome goes for it."""
        self._ended.append(task_id)
        if self.max_outcomes is None or len(self._ended) <= self.max_outcomes:
            return
        oldest = self._ended.popleft()
        if any(context.task.id == oldest for context in self.attempts.alive.values()):
            self._ended.append(oldest)  # something of it still runs, and is asked for by name
        else:
            self.handles.pop(oldest, None)

    def running(self) -> tuple[Running, ...]:
        """The attempts that are alive, oldest first."""
        found = []
        for each in self.kernel.alive():
            context = self.attempts.alive.get(each.token)
            claims = self.handles[each.task_id].task.claims
            claims += () if context is None else context.extra
            found.append(Running(each.task_id, claims, each.since, each.zombie))
        return tuple(found)

    def handle_of(self, task_id: str) -> Handle[Any]:
        """The handle of a task of this run."""
        handle = self.handles.get(task_id)
        if handle is None:
            known = self.kernel.has_ended(task_id)
            what = f"task {task_id!r} has ended and was forgotten" if known else ""
            raise UnknownTask(what or f"no task of this run has the id {task_id!r}")
        return handle

    def why(self, task_id: str) -> Explanation:
        """Every reason why a task is not running, as of now."""
        found = self.slots.refreshed(self.kernel.why(task_id, self.now()))
        if self._trouble is None:
            return found
        since, error = self._trouble
        return replace(found, reasons=(StuckJournal(str(error), since), *found.reasons))

    def in_trouble(self, error: Exception | None) -> None:
        """The journal cannot be written, so nothing is done; None: it can be again."""
        if error is None:
            self._trouble = None
        elif self._trouble is None:
            self._trouble = (self.now(), error)
        self.log.trouble(error)
        self.conditions.look()

    def is_stuck(self) -> bool:
        """Whether the journal cannot be written at the moment."""
        return self._trouble is not None

    async def flush(self) -> None:
        """Wait until all that was decided so far is in the journal."""
        last = self.events.turn.last
        await self.conditions.once(lambda: self.events.committed >= last or self.broken is not None)
        if self.broken is not None:
            raise ended_by(self.run_id, self.broken) from self.broken

    def _has_submitted(self, task_id: str) -> bool:
        """Whether this process has submitted a task with that id. An earlier one may have."""
        if task_id not in self.handles:
            return False
        return self.remembered is None or not self.remembered.is_free(task_id)

    def fresh_group(self) -> str:
        """A name that no group has."""
        self._groups += 1
        return f"group-{self._groups}"

    def cancel(self, task_id: str, reason: str) -> bool:
        """End a task; False if it has ended already."""
        if not isinstance(reason, str):
            raise InvalidOption(f"the reason of a cancellation is text, not {reason!r}")
        if self.handle_of(task_id).outcome is not None or self.kernel.state(task_id).is_end:
            return False
        self.take_in(s.Cancel(task_id, reason))
        return True

    def close(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()
        self.slots.close()
        self.breakers.close()
        self.events.close()


def ended_by(run_id: str, error: BaseException) -> InterlockError:
    """What to say of a run that could not go on."""
    if isinstance(error, UnreadableJournal):
        return InterlockError(f"run {run_id} was ended because its journal is lost: {error}")
    return InterlockError(f"run {run_id} was ended by a bug in Interlock: {error!r}")

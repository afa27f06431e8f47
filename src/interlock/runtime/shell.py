"""The shell around the kernel: takes in what happens, journals it, then carries out what follows.

    stimulus ──▶ kernel ──▶ instructions, events          at once, and without any effect
                                  │
                     end of the turn of the loop
                                  ▼
                     journal (one transaction) ──▶ starts, stops, outcomes, answers

Why this is right
-----------------
*One thread.* Everything here runs on the thread of the event loop; other threads come in through
`LoopThread`. `take_in` runs to its end without awaiting anything, so the kernel never sees half a
change. The one exception, a signal handler of the program that runs between any two lines, is
detected and refused (`_deciding`).

*Commit before effect.* `take_in` only collects decisions in `_todo` and their events in the current
turn. `_commit` takes both together and hands the events to the journal as one transaction;
`_perform` runs after that transaction is durable. So an agent runs only if its start is in the
journal, and a caller learns an outcome only if it is in the journal. While a commit is under way
(`_committing`), later decisions wait for the next one: effects happen in the order of decisions.

*Every attempt has one ending.* An attempt that ends reports once, through `report`. If it was told
to stop before, its outcome was decided then: `take_in` closes its context in the same step, the
kernel answers a late report with `Refused`, and the context raises AttemptOver. An attempt that is
told to stop before its start was carried out is never started (`Attempts.close`).

*A crash between any two steps loses nothing that was acknowledged:*

    crash after …                      the journal has           a resume finds
    take_in, before the commit         nothing of it             the state before; nothing ran
    the commit, before the effects     the start or outcome      an interrupted attempt; the outcome
    the effects                        the same                  the same
    a report, before its commit        the start only            an interrupted attempt

*The run ends when the shell does not understand its own state.* An exception out of the kernel or
out of the carrying out of decisions is a bug: `break_off` stops every attempt, tells every waiter,
and nothing is decided afterwards. Waiting for ever would be worse.

Costs
-----
    operation                  cost
    take_in                    the kernel's cost + O(instructions)
    end of a turn              O(decisions of the turn); one transaction, however many there are
    report                     O(1); all reports of a turn are one stimulus
    settling a task            O(waiters); with `max_outcomes` O(attempts alive) more
    suspend, break_off         O(tasks known)
    memory                     O(unfinished tasks + outcomes kept), see `task_table`

Known limits
------------
A loop that is blocked by an agent delays everything: timers are late by that much, and a timeout
then waits one short moment more for reports (`KernelTimer`). Decisions wait for a slow journal;
they pile up in memory meanwhile. Conditions are evaluated after every turn, so there should be few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from functools import partial
from typing import Any

from interlock.errors import (
    InterlockError,
    InvalidOption,
    NotRunning,
    ShuttingDown,
    UnreadableJournal,
    UsageError,
)
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel
from interlock.model.claim import Claim
from interlock.model.event import Kind
from interlock.model.limits import Breaker, Rate
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.usage import Usage
from interlock.model.why import Explanation
from interlock.runtime.attempts import Attempts
from interlock.runtime.conditions import Conditions
from interlock.runtime.context import CURRENT, TaskContext
from interlock.runtime.estimates import Estimates
from interlock.runtime.event_stream import EventStream
from interlock.runtime.handle import Handle, Running, Waiter
from interlock.runtime.inspection import Inspection, JournalTrouble
from interlock.runtime.limits.breakers import Breakers
from interlock.runtime.limits.rates import Rates
from interlock.runtime.limits.slots import SlotControl
from interlock.runtime.log import Log
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.outcomes import OutcomeBuilder
from interlock.runtime.ports import Ports
from interlock.runtime.recovery.open_run import OpenedRun
from interlock.runtime.requests import AttemptRequests
from interlock.runtime.run_clock import KernelTimer, RunClock
from interlock.runtime.run_settings import RunSettings
from interlock.runtime.submission.batch import TaskBatch
from interlock.runtime.submission.parent import Parent
from interlock.runtime.submission.preparation import Preparation
from interlock.runtime.submission.prepared import Prepared
from interlock.runtime.task_table import TaskTable, is_stored
from interlock.runtime.turn import Decision, Turn


class Shell:
    """Drives one kernel for the time of one run, and owns the state around it.

    The parts (attempts, requests, limits, tasks) hold state of their own and reach the shell
    through narrow protocols. No other module assigns to an attribute of the shell or of its parts.
    """

    def __init__(
        self, kernel: Kernel, origin: OpenedRun, ports: Ports, settings: RunSettings
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop_thread = LoopThread(self.loop, self._in_one_turn)
        self.clock = RunClock(self.loop, origin.epoch, origin.elapsed)
        self.kernel = kernel
        self.run_id = run_id = origin.run_id
        self.workspace = settings.workspace
        self.agents = settings.agents
        self.journal = origin.journal
        self.disk = origin.disk
        """The journal, if it outlives the process."""
        self.known_tasks = origin.known_tasks
        """What the journal knows of earlier runs, if it outlives the process."""
        self.passed_over = origin.passed_over
        self.redaction = origin.redaction
        self.estimates = None if origin.disk is None else Estimates(origin.disk.read.estimate)
        self.log = Log(run_id, origin.redaction)
        self.events = EventStream(origin.journal, self.log, origin.epoch)
        self.conditions = Conditions(self.loop)
        self.outcomes = OutcomeBuilder(self.clock)
        self.attempts = Attempts(
            self, ports.chance, settings.grace, settings.refuses_unserializable
        )
        self.tasks = TaskTable(
            settings.max_outcomes,
            origin.known_tasks,
            kernel.has_ended,
            self.attempts.is_alive,
            partial(is_stored, origin.disk),
        )
        self.preparation = Preparation(
            self.loop_thread,
            settings.workspace,
            self.clock.wall,
            settings.agents,
            self.estimates,
        )
        self.requests = AttemptRequests(self)
        limits = settings.limits
        self.rates = Rates(self, limits.rates)
        self.slots = SlotControl(self, kernel, ports.load, limits.auto, limits.gate)
        self.breakers = Breakers(self, limits.breakers, self.tasks.claims_of)
        self.trouble = JournalTrouble(self.log, self.now)
        self.inspection = Inspection(
            kernel, self.tasks, self.attempts, self.slots, self.trouble, self.now
        )
        self.broken: BaseException | None = None
        """A bug of ours. Nothing is decided after it."""
        self.suspended = False
        """A signal came: nothing more is decided, and the run can be resumed."""
        self._timer = KernelTimer(self.clock, self._tick)
        self._reports: list[s.Ended | s.Gone] = []
        self._todo: list[Decision] = []
        """What was decided and has not been carried out: it is not in the journal yet."""
        self._scheduled = False
        self._deciding = False
        self._committing = False

    # -- taking in --------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the run began: the kernel's time."""
        return self.clock.now()

    def take_in(self, stimulus: s.Stimulus) -> None:
        """Let the kernel decide. A UsageError means that nothing has changed."""
        if self.broken is not None:
            raise ended_by(self.run_id, self.broken) from self.broken
        if self.events.closed:
            raise NotRunning(f"run {self.run_id} is over; enter a new Runtime")
        if self.suspended:
            raise ShuttingDown(f"run {self.run_id} was interrupted; resume it with resume=True")
        if self._deciding:
            # A signal handler of the program runs on this very thread, between any two lines.
            raise UsageError(
                "called in the middle of a decision, as from a signal handler; "
                "hand it over with loop.call_soon_threadsafe()"
            )
        if self.slots.is_watching:
            self.slots.look()
        now = self.clock.now()
        self._deciding = True
        try:
            decisions: list[Decision] = list(self.kernel.handle(stimulus, now))
        finally:
            self._deciding = False
        # The outcome is made now, because it goes into the journal with this turn.
        for index, each in enumerate(decisions):
            if isinstance(each, do.Settle):
                ending = self.attempts.take_ending(each.task_id)
                decisions[index] = self.outcomes.outcome(each, ending)
            elif isinstance(each, do.Stop):
                # Now, not when it is carried out: an attempt whose outcome is decided may have no
                # effect any more, not even in the time that the journal takes.
                self.attempts.close(each.token)
        self.events.turn.decided(now, stimulus, decisions)
        self._todo += decisions
        if self.breakers:
            self.breakers.decided(stimulus, decisions)
        if self.slots.is_watching:
            self.slots.keep_looking()
        self._schedule()

    def report(self, report: s.Ended | s.Gone) -> None:
        """An attempt has ended or is gone.

        The reports of one turn of the loop go to the kernel together: what they release can then be
        given to the best of all waiters, not to the first one that fits.
        """
        self._reports.append(report)
        self._schedule()

    def told(self, context: TaskContext, kind: Kind, data: Any) -> None:
        """An agent reports something about itself that the kernel need not know."""
        context.check_open()
        task_id = context.task.id
        if isinstance(data, Usage):
            self.outcomes.add_usage(task_id, data)
        self.note(kind, task_id, data)

    def note(self, kind: Kind, task_id: str, data: Any = None) -> None:
        """Record an event that the kernel need not know."""
        self.events.turn.told(self.now(), kind, task_id, data)
        self._schedule()

    def submit(
        self,
        tasks: Sequence[Task | Prepared],
        context: Context,
        parent: Parent | None = None,
        group: str = "",
        fail_fast: bool = False,
        deadline: float | None = None,
    ) -> list[Handle[Any]]:
        """Accept all of these tasks or, with an error, none; a handle for each, in order."""
        batch = TaskBatch(self, context, parent)
        handles = [batch.add(task) for task in tasks]
        batch.take_in(group, fail_fast, deadline)
        return handles

    # -- the turn of the loop ---------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._turn)

    def _in_one_turn(self, work: Callable[[], None]) -> None:
        """Do something and, at once, what follows from it: one transaction for all of it."""
        if self._scheduled:
            work()
            return
        # Marked as scheduled, so that `work` does not schedule a turn of its own.
        self._scheduled = True
        try:
            work()
        finally:
            self._turn()

    def _turn(self) -> None:
        if self.broken is not None or self.events.closed:
            return
        if self.suspended:
            # Whatever ends now was cut off by us. A resume finds it interrupted and runs it again.
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
            # Before the kernel: a breaker that opens now must stop what would start next.
            if self.breakers:
                self.breakers.reported(reports)
            self.take_in(s.Reports(tuple(reports)))

    def _commit(self) -> None:
        """Journal what was decided; then, and only then, do it."""
        # Both at once: an event without its effect, or the reverse, would be a lost decision.
        turn = self.events.take()
        todo, self._todo = self._todo, []
        pending = self.events.append(turn) if turn else None
        if pending is None:  # a journal in memory is done at once
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
                if not self.suspended:  # otherwise it is interrupted before it began
                    self.attempts.start(each)
            elif isinstance(each, Outcome):
                self.tasks.settle(each)
            elif isinstance(each, do.Stop):
                self.attempts.stop(each)
            elif isinstance(each, do.Resume):
                self.attempts.extend(each.token, each.claims)
                self.requests.resume(each.token, each.request)
            elif isinstance(each, do.Deny):
                self.requests.deny(each.token, each.request, each.task_id, each.reason)
            elif isinstance(each, do.SetTimer):
                self._timer.set(each.at)
        if turn:
            self.events.mark_durable(turn)
            self.events.publish(turn)

    # -- ending early -----------------------------------------------------------------------

    def suspend(self) -> None:
        """Decide nothing more: unfinished tasks stay unfinished in the journal, for a resume.

        Running attempts are interrupted on purpose, which is not held against them.
        """
        if not self.suspended and self.broken is None:
            # What has ended by now has ended by itself, and keeps its outcome.
            self._hear_reports()
            for each in self.kernel.alive():
                if not each.zombie:
                    self.note(Kind.INTERRUPTED, each.task_id, {"token": each.token, "by": "signal"})
            self.suspended = True
            self._tell_all(ShuttingDown(f"run {self.run_id} was interrupted"))
            self.conditions.look()

    def break_off(self, error: BaseException) -> None:
        """A bug of ours, or the journal is lost: stop every attempt and tell every waiter."""
        if self.broken is not None:
            return
        self.broken = error
        self.log.broken(error)
        told = ended_by(self.run_id, error)
        told.__cause__ = error
        self._tell_all(told)
        self.events.close()
        self.conditions.look()

    def _tell_all(self, error: BaseException) -> None:
        self.attempts.stop_all()
        self.requests.fail_all(error)
        self.tasks.give_up(error)

    def no_outcome(self) -> BaseException | None:
        """Why unsettled tasks will not get an outcome in this process; None: they will."""
        if self.broken is not None:
            error = ended_by(self.run_id, self.broken)
            error.__cause__ = self.broken
            return error
        if self.suspended:
            return ShuttingDown(f"run {self.run_id} was interrupted")
        return None

    # -- time -------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._unless_over(lambda: self.take_in(s.Tick()))

    def later(self, delay: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Call a function after a delay, unless the run has ended by then."""
        return self.loop.call_later(delay, self._unless_over, action)

    def _unless_over(self, action: Callable[[], None]) -> None:
        if self.broken is not None or self.suspended or self.events.closed:
            return
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - as in _turn
            self.break_off(error)

    # -- steering ---------------------------------------------------------------------------

    def set_limit(self, name: str, limit: Rate | Breaker, *, counts_reports: bool = False) -> None:
        """Change a rate or a breaker, or add one."""
        if isinstance(limit, Breaker):
            self.breakers.set(name, limit, counts_reports=counts_reports)
        elif isinstance(limit, Rate):
            self.rates.set(name, limit)
        else:
            raise InvalidOption(f"the limit {name!r} is {limit!r}; it can be a Rate or a Breaker")

    def cancel(self, task_id: str, reason: str) -> bool:
        """End a task; False if it has ended already."""
        if not isinstance(reason, str):
            raise InvalidOption(f"the reason of a cancellation is text, not {reason!r}")
        if self.tasks.named(task_id).outcome is not None or self.kernel.state(task_id).is_end:
            return False
        self.take_in(s.Cancel(task_id, reason))
        return True

    def cancel_group(self, group: str, reason: str) -> None:
        """End all tasks of a group, unless the run has broken off: then they have been stopped."""
        if self.broken is None:
            self.take_in(s.CancelGroup(group, reason))

    # -- waiting ----------------------------------------------------------------------------

    async def ends(self, handles: Sequence[Handle[Any]]) -> None:
        """Wait until all these tasks have their outcomes; inside a task, with its slot lent out."""
        context = CURRENT.get(None)
        # Also an attempt that is over and not gone may not wait by itself: the tasks may wait for
        # what it holds, and a thread cannot be woken up. Its request raises AttemptOver.
        if context is not None and self.attempts.context_of(context.token) is context:
            ids = tuple(handle.task.id for handle in handles if handle.outcome is None)
            if ids:
                await self.requests.tasks_end(context, ids)
            return
        for handle in handles:
            if handle.outcome is None:
                await handle.settled()

    async def flush(self) -> None:
        """Wait until all that was decided so far is in the journal."""
        # The turn that is open now is the last that can contain it.
        last = self.events.turn.last
        await self.conditions.once(lambda: self.events.committed >= last or self.broken is not None)
        if self.broken is not None:
            raise ended_by(self.run_id, self.broken) from self.broken

    def all_settled(self) -> bool:
        """Whether every task has its outcome, or will have none in this process."""
        return self.tasks.all_settled or self.broken is not None or self.suspended

    def is_idle(self) -> bool:
        """Whether no attempt is alive and all reports have been heard."""
        return not self.attempts.alive and not self._reports

    def is_quiet(self) -> bool:
        """Whether every task has its outcome and no attempt is alive."""
        return self.all_settled() and not self.attempts.alive

    def nothing_to_commit(self) -> bool:
        """Whether all that was decided is in the journal and has been carried out."""
        if self.broken is not None:
            return not self._committing
        return not (self._todo or self._reports or self.events.turn or self._committing)

    # -- looking ----------------------------------------------------------------------------

    @property
    def is_durable(self) -> bool:
        """Whether the run outlives the process."""
        return self.disk is not None

    def state_of(self, task_id: str) -> State:
        """The state of a task."""
        return self.kernel.state(task_id)

    def context_of(self, token: int) -> TaskContext | None:
        """The context of an attempt that is alive."""
        return self.attempts.context_of(token)

    def take_fatal(self, task_ids: Iterable[str]) -> tuple[str, BaseException] | None:
        """The task among these that ran out of memory or stack, and with what; said once."""
        return self.attempts.take_fatal(task_ids)

    def running(self) -> tuple[Running, ...]:
        """The attempts that are alive, oldest first."""
        return self.inspection.running()

    def holders(self) -> list[tuple[str, tuple[Claim, ...]]]:
        """Everything that a new task may have to wait for, with its claims."""
        return self.inspection.holders()

    def why(self, task_id: str) -> Explanation:
        """Every reason why a task is not running, as of now."""
        return self.inspection.why(task_id)

    # -- troubles and the end ---------------------------------------------------------------

    def in_trouble(self, error: Exception | None) -> None:
        """The journal cannot be written; None: it can be again."""
        self.trouble.report(error)
        self.conditions.look()

    def callback_failed(self, task_id: str, callback: Waiter, error: BaseException) -> None:
        """A function that was to be called at the end of a task raised."""
        self.log.callback_failed(task_id, callback, error)

    def close(self) -> None:
        """The run is over."""
        self._timer.cancel()
        self.slots.close()
        self.breakers.close()
        self.events.close()


def ended_by(run_id: str, error: BaseException) -> InterlockError:
    """The error for callers of a run that could not go on."""
    if isinstance(error, UnreadableJournal):
        return InterlockError(f"run {run_id} was ended because its journal is lost: {error}")
    return InterlockError(f"run {run_id} was ended by a bug in Interlock: {error!r}")

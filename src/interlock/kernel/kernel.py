"""The kernel: `handle(stimulus, now)` returns instructions.

It is pure: no clock, no randomness, no I/O. The same stimuli at the same times give the same
instructions, so one kernel serves production, simulation and replay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from interlock.errors import (
    BlankId,
    ClockWentBack,
    IllegalTransition,
    InvalidOption,
    ShuttingDown,
    UnknownResource,
    UnknownTask,
)
from interlock.kernel import stimuli as s
from interlock.kernel.admission import Admission
from interlock.kernel.explain import explain
from interlock.kernel.instructions import (
    Change,
    Instruction,
    Refused,
    SetTimer,
    Settle,
    Start,
    Stop,
)
from interlock.kernel.meters import Meter
from interlock.kernel.midflight import Midflight
from interlock.kernel.order import count_claims, start_key
from interlock.kernel.records import Attempt, Entry, Group
from interlock.kernel.states import MAY_FOLLOW
from interlock.kernel.submission import check_submission, raise_tails
from interlock.kernel.table import Table, check_capacity
from interlock.kernel.timers import Timer, Timers
from interlock.kernel.waiters import Grant, Waiter
from interlock.model.claim import Claim, uses
from interlock.model.limits import Rate
from interlock.model.outcome import ErrorRecord, State
from interlock.model.progress import Progress
from interlock.model.task import Task
from interlock.model.why import Explanation

_FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.CONFLICTED})
_ATTEMPT_ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.CONFLICTED})
_DEFAULT_ESTIMATE = 1.0


class Alive(NamedTuple):
    """An attempt that holds something."""

    task_id: str
    token: int
    zombie: bool
    holds_slot: bool
    since: float


class Reservation(NamedTuple):
    """Claims that nobody younger may take before this waiting task has started."""

    task_id: str
    claims: tuple[Claim, ...]


class Kernel:
    """Decides who may start; owns the life of every task of one run."""

    def __init__(
        self,
        *,
        slots: int,
        capacities: Mapping[str, int] | None = None,
        rates: Mapping[str, Rate] | None = None,
        protected: Iterable[str] = (),
        first_token: int = 1,
        fold_case: bool = False,
    ) -> None:
        self.table = Table(slots, capacities or {}, rates or {}, protected, fold_case)
        self.admission = Admission(self.table)
        self.timers = Timers()
        self.midflight = Midflight(self)
        self.entries: dict[str, Entry] = {}
        """Unfinished tasks, and finished ones of which an attempt is still alive."""
        self.ends: dict[str, State] = {}
        self.groups: dict[str, Group] = {}
        self.now = float("-inf")
        self.paused_since: float | None = None
        self.draining_since: float | None = None
        self.out: list[Instruction] = []
        self._counts = dict.fromkeys(State, 0)
        self._next_token = first_token
        self._arrivals = 0
        self._announced: float | None = None
        self._agenda: deque[Callable[[], None]] = deque()
        self._rates = [meter for meter in self.table.meters.values() if meter.window is not None]
        self._rate_timers: dict[Meter, Timer] = {}
        self._handlers: dict[type, Callable[[Any], None]] = {
            s.Submit: self._submit,
            s.Ended: self._ended,
            s.Gone: self._gone,
            s.Reports: self._reports,
            s.Cancel: self._cancel,
            s.CancelGroup: self._cancel_group,
            s.Extend: self.midflight.extend,
            s.Take: self.midflight.take,
            s.Used: self.midflight.used,
            s.AwaitChildren: self.midflight.await_children,
            s.Ask: self.midflight.ask,
            s.Answer: self.midflight.answer,
            s.SetCapacity: self._set_capacity,
            s.HoldRate: self._hold_rate,
            s.Pause: self._pause,
            s.Unpause: self._unpause,
            s.Prioritize: self._prioritize,
            s.Tick: self._tick,
            s.Drain: self._drain,
            s.Shutdown: self._shutdown,
        }

    # -- the contract -----------------------------------------------------------------------

    def handle(self, stimulus: s.Stimulus, now: float) -> list[Instruction]:
        """Take in what happened at a time; what is to be done now, in order.

        A UsageError means that the stimulus asked for something impossible and changed nothing.
        """
        if not now >= self.now:
            raise ClockWentBack(f"time {now} was given after {self.now}; time never goes back")
        self.now = self.table.now = now
        self.admission.turn += 1
        self.out = []
        self._handlers[type(stimulus)](stimulus)
        while self._agenda:
            self._agenda.popleft()()
        again = True
        while again:
            again = False
            for waiter, grant in self.admission.admit(now):
                if waiter.midflight:
                    self.midflight.granted(waiter.owner)
                    again = True  # with its slot back, its other waits need none any more
                else:
                    self._start(waiter.owner, grant)
        if self._rates:
            self._watch_rates()
        upcoming = self.timers.next()
        if upcoming != self._announced:
            self._announced = upcoming
            self.out.append(SetTimer(upcoming))
        return self.out

    def state(self, task_id: str) -> State:
        """The state of a task of this run."""
        end = self.ends.get(task_id)
        return end if end is not None else _known(self.unfinished(task_id).state)

    def why(self, task_id: str) -> Explanation:
        """Every reason why a task is not running, or what it waits for in mid-flight."""
        return explain(self, task_id)

    def progress(self) -> Progress:
        """How many tasks are in which state."""
        counts = {str(state): count for state, count in self._counts.items()}
        return Progress(**counts, zombies=len(self.admission.zombies))

    def alive(self) -> Iterator[Alive]:
        """Attempts that hold something, zombies included."""
        for grant in self.admission.grants:
            attempt: Attempt = grant.owner
            yield Alive(
                attempt.entry.task.id,
                attempt.token,
                grant.zombie,
                grant.holds_slot,
                attempt.started_at,
            )

    def reservations(self) -> Iterator[Reservation]:
        """Waiting tasks that were overtaken so often that nobody younger may pass them now."""
        for waiter in self.admission.closers:
            if waiter.closes:
                yield Reservation(waiter.owner.task.id, waiter.owner.task.claims)
        for waiter in self.admission.reserved:
            amounts = waiter.profile.amounts
            held = tuple(uses(m.name, max(1, n)) for m, n in amounts if m.reserved is waiter)
            yield Reservation(waiter.owner.task.id, held)

    # -- submission -------------------------------------------------------------------------

    def _submit(self, stimulus: s.Submit) -> None:
        parent: Attempt | None = None
        if stimulus.parent is not None:
            parent = self.current(stimulus.parent, stimulus.token, stimulus)
            if parent is None:
                return
        if self.draining_since is not None:
            raise ShuttingDown("this run takes no new tasks: it was asked to drain or shut down")
        if stimulus.group and not stimulus.group.strip():
            raise BlankId(f"a group needs a name that is not blank, not {stimulus.group!r}")
        if (stimulus.fail_fast or stimulus.deadline is not None) and not stimulus.group:
            raise InvalidOption("fail_fast and a group deadline need a group")
        if stimulus.deadline is not None and not stimulus.deadline >= 0:
            raise InvalidOption(
                f"the group's deadline is {stimulus.deadline}; it must be 0 or more"
            )
        check_submission(stimulus.tasks, self._knows, self.table)
        batch = {task.id: self._entry(task) for task in stimulus.tasks}
        for entry in batch.values():
            entry.parent = parent
            for dependency in entry.task.after:
                before = batch.get(dependency) or self.entries.get(dependency)
                if before is not None and not _known(before.state, State.BLOCKED).is_end:
                    entry.missing += 1
        if parent is not None:
            self.midflight.refuse_hanging_children(parent, batch)
        self._add(stimulus, batch, parent)

    def _entry(self, task: Task) -> Entry:
        needs, amounts = self.table.resolve(task.claims)
        estimate = _DEFAULT_ESTIMATE if task.estimate is None else task.estimate
        return Entry(task, needs, amounts, estimate)

    def _add(self, stimulus: s.Submit, batch: dict[str, Entry], parent: Attempt | None) -> None:
        self.entries.update(batch)
        for entry in batch.values():
            for dependency in entry.task.after:
                before = self.entries.get(dependency)
                if before is not None and not _known(before.state, State.BLOCKED).is_end:
                    if before.dependents is None:
                        before.dependents = []
                    before.dependents.append(entry)
            count_claims(entry, 1)
        raise_tails(batch, self.entries)
        group = self._group(stimulus) if stimulus.group else None
        for entry in batch.values():
            task = entry.task
            if group is not None:
                entry.group = group
                group.members[task.id] = entry
            if parent is not None:
                if parent.entry.children is None:
                    parent.entry.children = {}
                parent.entry.children[task.id] = entry
            if task.deadline is not None:
                entry.deadline = self.timers.set(
                    self.now + task.deadline, partial(self._deadline_passed, entry)
                )
        for entry in batch.values():
            failed = next((d for d in entry.task.after if self._did_not_succeed(d)), None)
            if failed is not None:
                self._settle(entry, State.SKIPPED, None, failed)
            elif entry.missing:
                self.enter(entry, State.BLOCKED, "")
            else:
                self._make_ready(entry)

    def _knows(self, task_id: str) -> bool:
        return task_id in self.entries or task_id in self.ends

    def _did_not_succeed(self, task_id: str) -> bool:
        return self.ends.get(task_id, State.SUCCEEDED) is not State.SUCCEEDED

    def _group(self, stimulus: s.Submit) -> Group:
        group = self.groups.get(stimulus.group)
        if group is None:
            group = self.groups[stimulus.group] = Group(stimulus.group, stimulus.fail_fast)
        group.fail_fast = group.fail_fast or stimulus.fail_fast
        if stimulus.deadline is not None:
            self.timers.drop(group.deadline)
            group.deadline = self.timers.set(
                self.now + stimulus.deadline, partial(self._group_deadline_passed, group)
            )
        return group

    # -- starting ---------------------------------------------------------------------------

    def _make_ready(self, entry: Entry) -> None:
        """Dependencies and backoff are over: wait for claims and a slot."""
        self.enter(entry, State.WAITING, "")
        if entry.paused_since is None:
            self._enqueue(entry)

    def _enqueue(self, entry: Entry) -> None:
        self._arrivals += 1
        kin = entry.parent.ancestry() if entry.parent is not None else ()
        entry.waiter = Waiter(
            entry,
            entry.needs,
            self.admission.profile(entry.amounts, kin, midflight=False, seated=False),
            self.admission.turn,
            start_key(entry, len(self.entries), self._arrivals),
        )
        self.admission.enqueue(entry.waiter)

    def _start(self, entry: Entry, grant: Grant) -> None:
        entry.waiter = None
        entry.attempts += 1
        token = self.new_token()
        attempt = Attempt(entry, token, self.now, grant)
        grant.owner = attempt
        entry.attempt = attempt
        if entry.started_at is None:
            entry.started_at = self.now
        self.enter(entry, State.RUNNING, None)
        timeout = entry.task.timeout
        if timeout is not None:
            attempt.timeout = self.timers.set(
                self.now + timeout, partial(self._timeout_passed, attempt)
            )
        self.out.append(Start(entry.task.id, entry.attempts, token))

    def new_token(self) -> int:
        """A fencing token: larger than all before."""
        token = self._next_token
        self._next_token += 1
        return token

    # -- ending -----------------------------------------------------------------------------

    def _ended(self, stimulus: s.Ended) -> None:
        _check_end(stimulus)
        attempt = self._alive(stimulus.task_id, stimulus.token, stimulus)
        if attempt is None:
            return
        decided = attempt.ended
        if not decided:
            self._close(attempt)
        if stimulus.gone:
            self._release(attempt)
        elif not decided:
            self.admission.make_zombie(attempt.grant)
        if not decided:
            entry = attempt.entry
            if stimulus.status is State.FAILED:
                wait = entry.task.retry.wait(entry.attempts, stimulus.chance)
                self._failed(entry, stimulus.error, State.FAILED, max(wait, stimulus.retry_after))
            else:
                self._settle(entry, stimulus.status, stimulus.error, "")

    def _gone(self, stimulus: s.Gone) -> None:
        attempt = self._alive(stimulus.task_id, stimulus.token, stimulus)
        if attempt is None:
            return
        if not attempt.ended:
            # Gone without a word: the worker was lost.
            self._close(attempt)
            self._release(attempt)
            lost = ErrorRecord("WorkerLost", "the attempt vanished without an outcome")
            wait = attempt.entry.task.retry.wait(attempt.entry.attempts, 0.0)
            self._failed(attempt.entry, lost, State.FAILED, wait)
        else:
            self._release(attempt)

    def _reports(self, stimulus: s.Reports) -> None:
        for report in stimulus.reports:
            _check_end(report)
        for report in stimulus.reports:
            self._handlers[type(report)](report)
            while self._agenda:
                self._agenda.popleft()()

    def _close(self, attempt: Attempt) -> None:
        """The outcome of an attempt is decided: it may ask for nothing more."""
        attempt.ended = True
        self.timers.drop(attempt.timeout)
        self.midflight.abandon(attempt)
        for child in list((attempt.entry.children or {}).values()):
            self._stop(child, State.CANCELLED, "its parent ended")

    def _release(self, attempt: Attempt) -> None:
        """Nothing of an attempt is left: others may have what it held."""
        entry = attempt.entry
        entry.attempt = None
        self.admission.release(attempt.grant)
        self.midflight.forget(attempt)
        if entry.state is not None and entry.state.is_end:
            self._forget(entry)
        elif entry.state is State.RETRYING and entry.retry_timer is None:
            self._make_ready(entry)

    def _forget(self, entry: Entry) -> None:
        self.table.forget(entry.needs)
        del self.entries[entry.task.id]

    def _failed(self, entry: Entry, error: ErrorRecord | None, end: State, wait: float) -> None:
        """An attempt came to nothing: try again after a wait, or end."""
        entry.error = error
        final = error is not None and not error.retryable
        if final or entry.attempts >= entry.task.retry.attempts:
            self._settle(entry, end, error, "")
            return
        entry.retry_at = self.now + wait
        entry.retry_timer = self.timers.set(entry.retry_at, partial(self._backoff_over, entry))
        self.enter(entry, State.RETRYING, f"attempt {entry.attempts} {end}")

    def _backoff_over(self, entry: Entry, now: float) -> None:
        entry.retry_timer = None
        if entry.attempt is None:
            self._make_ready(entry)

    def _timeout_passed(self, attempt: Attempt, now: float) -> None:
        entry = attempt.entry
        self.out.append(Stop(entry.task.id, attempt.token, "timed out"))
        self._close(attempt)
        self.admission.make_zombie(attempt.grant)
        error = ErrorRecord("TimedOut", f"attempt {entry.attempts} ran out of its timeout")
        self._failed(entry, error, State.TIMED_OUT, entry.task.retry.wait(entry.attempts, 0.0))

    def _deadline_passed(self, entry: Entry, now: float) -> None:
        entry.deadline = None
        self._stop(entry, State.TIMED_OUT, "its deadline passed")

    def _group_deadline_passed(self, group: Group, now: float) -> None:
        group.deadline = None
        for entry in list(group.members.values()):
            self._stop(entry, State.TIMED_OUT, f"the deadline of group {group.name!r} passed")

    def _stop(self, entry: Entry, end: State, cause: str) -> None:
        """End a task from outside, whatever it does now."""
        if entry.state is not None and entry.state.is_end:
            return
        attempt = entry.attempt
        if attempt is not None and not attempt.ended:
            self.out.append(Stop(entry.task.id, attempt.token, cause))
            self._close(attempt)
            self.admission.make_zombie(attempt.grant)
        self._settle(entry, end, entry.error, cause)

    def _settle(self, entry: Entry, end: State, error: ErrorRecord | None, cause: str) -> None:
        """Give a task its one outcome; what follows for others is put on the agenda."""
        if entry.waiter is not None:
            self.admission.withdraw(entry.waiter)
            entry.waiter = None
        self.timers.drop(entry.retry_timer)
        self.timers.drop(entry.deadline)
        self.enter(entry, end, None)
        task_id = entry.task.id
        self.ends[task_id] = end
        self.out.append(
            Settle(task_id, end, entry.attempts, entry.started_at, self.now, error, cause)
        )
        count_claims(entry, -1)
        if entry.attempt is None:
            self._forget(entry)
        self._agenda.append(partial(self._after_settling, entry))

    def _after_settling(self, entry: Entry) -> None:
        end, task_id = entry.state, entry.task.id
        dependents, entry.dependents = entry.dependents or (), None
        for dependent in dependents:
            if dependent.state is not State.BLOCKED:
                continue
            if end is not State.SUCCEEDED:
                self._settle(dependent, State.SKIPPED, None, task_id)
                continue
            dependent.missing -= 1
            if not dependent.missing:
                self._make_ready(dependent)
        if entry.parent is not None:
            self.midflight.child_ended(entry.parent, task_id)
        group = entry.group
        if group is not None:
            del group.members[task_id]
            if group.fail_fast and end in _FAILURES:
                for member in list(group.members.values()):
                    self._stop(member, State.CANCELLED, f"{task_id!r} did not succeed")
            if not group.members:
                self.timers.drop(group.deadline)
                self.groups.pop(group.name, None)

    # -- steering ---------------------------------------------------------------------------

    def _cancel(self, stimulus: s.Cancel) -> None:
        if stimulus.task_id not in self.ends:
            self._stop(self.unfinished(stimulus.task_id), State.CANCELLED, stimulus.reason)

    def _cancel_group(self, stimulus: s.CancelGroup) -> None:
        if not stimulus.group:
            members = list(self.entries.values())
        else:
            group = self.groups.get(stimulus.group)
            members = list(group.members.values()) if group is not None else []
        for entry in members:
            self._stop(entry, State.CANCELLED, stimulus.reason)

    def _set_capacity(self, stimulus: s.SetCapacity) -> None:
        meter = self.table.meters.get(stimulus.resource)
        if meter is None or meter.window is not None:
            raise UnknownResource(
                f"{stimulus.resource!r} has no capacity to change; "
                f"these have: {', '.join(n for n, m in self.table.meters.items() if not m.window)}"
            )
        meter.capacity = check_capacity(stimulus.resource, stimulus.capacity, 0)
        self.admission.reopen(meter)

    def _hold_rate(self, stimulus: s.HoldRate) -> None:
        meter = self.table.meters.get(stimulus.resource)
        if meter is None or meter.window is None:
            raise UnknownResource(f"{stimulus.resource!r} is not a rate of this run")
        if stimulus.until > max(self.now, meter.closed_until):
            if not meter.closed_until:
                meter.closed_since = self.now
            meter.closed_until = stimulus.until
            self._rate_over(meter, self.now)

    def _watch_rates(self) -> None:
        for meter in self._rates:
            if meter.spent and meter not in self._rate_timers:
                self._rate_over(meter, self.now)

    def _rate_over(self, meter: Meter, now: float) -> None:
        """Take back what the window has passed for, and look again when more is to come."""
        self.timers.drop(self._rate_timers.pop(meter, None))
        again = meter.give_back(now)
        if again is not None:
            self._rate_timers[meter] = self.timers.set(again, partial(self._rate_over, meter))
        self.admission.reopen(meter)

    def _pause(self, stimulus: s.Pause) -> None:
        if stimulus.task_id is None:
            if self.paused_since is None:
                self.paused_since = self.now
            self.admission.halted = True
            return
        entry = self.unfinished(stimulus.task_id)
        if entry.paused_since is None:
            entry.paused_since = self.now
        if entry.waiter is not None:
            self.admission.withdraw(entry.waiter)
            entry.waiter = None

    def _unpause(self, stimulus: s.Unpause) -> None:
        if stimulus.task_id is None:
            self.paused_since = None
            self.admission.halted = self.draining_since is not None
            return
        entry = self.unfinished(stimulus.task_id)
        entry.paused_since = None
        if entry.state is State.WAITING and entry.waiter is None:
            self._enqueue(entry)

    def _prioritize(self, stimulus: s.Prioritize) -> None:
        if isinstance(stimulus.priority, bool) or not isinstance(stimulus.priority, int):
            raise InvalidOption(f"a priority is a whole number, not {stimulus.priority!r}")
        entry = self.unfinished(stimulus.task_id)
        entry.priority = stimulus.priority
        if entry.waiter is not None:
            self.admission.prioritize(entry.waiter, entry.priority)

    def _tick(self, stimulus: s.Tick) -> None:
        for timer in self.timers.due(self.now):
            timer.action(self.now)
            while self._agenda:
                self._agenda.popleft()()

    def _drain(self, stimulus: s.Drain) -> None:
        if self.draining_since is None:
            self.draining_since = self.now
        self.admission.halted = True

    def _shutdown(self, stimulus: s.Shutdown) -> None:
        self._drain(s.Drain())
        for entry in list(self.entries.values()):
            self._stop(entry, State.CANCELLED, "the run was shut down")

    # -- looking up -------------------------------------------------------------------------

    def unfinished(self, task_id: str) -> Entry:
        """The entry of an unfinished task."""
        entry = self.entries.get(task_id)
        if entry is None or task_id in self.ends:
            if task_id in self.ends:
                raise UnknownTask(f"task {task_id!r} has already ended as {self.ends[task_id]}")
            raise UnknownTask(f"no task of this run has the id {task_id!r}")
        return entry

    def _alive(self, task_id: str, token: int, stimulus: s.Stimulus) -> Attempt | None:
        """The attempt with that token, if something of it is left."""
        entry = self.entries.get(task_id)
        attempt = entry.attempt if entry is not None else None
        if attempt is None or attempt.token != token:
            self.out.append(Refused(task_id, token, type(stimulus).__name__))
            return None
        return attempt

    def current(self, task_id: str, token: int, stimulus: s.Stimulus) -> Attempt | None:
        """The attempt with that token, if its outcome is still open."""
        attempt = self._alive(task_id, token, stimulus)
        if attempt is not None and attempt.ended:
            self.out.append(Refused(task_id, token, type(stimulus).__name__))
            return None
        return attempt

    def enter(self, entry: Entry, state: State, detail: str | None) -> None:
        """Put a task into a state; `detail` None says that another instruction tells of it."""
        old = entry.state
        if state not in MAY_FOLLOW[old]:
            past = entry.story or []
            story = [f"{at:g}: {each}" for at, each in zip(past[::2], past[1::2], strict=True)]
            raise IllegalTransition(entry.task.id, str(old), str(state), story)
        if old is not None:
            self._counts[old] -= 1
            if entry.story is None:
                entry.story = [entry.since, old]
            else:
                entry.story += (entry.since, old)
        self._counts[state] += 1
        entry.state = state
        entry.since = self.now
        if detail is not None:
            self.out.append(Change(entry.task.id, state, detail))


def _check_end(report: s.Ended | s.Gone) -> None:
    if isinstance(report, s.Ended) and report.status not in _ATTEMPT_ENDS:
        raise InvalidOption(
            f"an attempt cannot end as {report.status}; say {', '.join(sorted(_ATTEMPT_ENDS))}"
        )


def _known(state: State | None, default: State | None = None) -> State:
    if state is not None:
        return state
    assert default is not None
    return default

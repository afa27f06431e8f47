"""One run: its tasks, and what becomes of them.

Everything here changes state and adds instructions to `out`; nothing decides who starts, that is
`admission`. What follows for others when a task ends is put on an agenda and worked off before
anything starts, so that a chain of a million dependents needs no recursion.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from interlock.errors import (
    BlankId,
    IllegalTransition,
    InvalidOption,
    ShuttingDown,
    UnknownTask,
)
from interlock.kernel import stimuli as s
from interlock.kernel.admission import Admission
from interlock.kernel.instructions import Change, Instruction, Refused, Settle, Start, Stop
from interlock.kernel.midflight import Midflight
from interlock.kernel.order import count_claims, start_key
from interlock.kernel.records import Attempt, Entry, Group
from interlock.kernel.states import MAY_FOLLOW
from interlock.kernel.submission import check_submission, raise_tails
from interlock.kernel.table import Table
from interlock.kernel.timers import Timers
from interlock.kernel.waiters import Grant, Waiter
from interlock.model.duration import seconds
from interlock.model.outcome import ErrorRecord, State
from interlock.model.task import Task

_FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.CONFLICTED})
_ATTEMPT_ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.CONFLICTED})
_DEFAULT_ESTIMATE = 1.0


class Run:
    """The life of every task of one run."""

    def __init__(self, table: Table, first_token: int) -> None:
        self.table = table
        self.admission = Admission(table)
        self.timers = Timers()
        self.midflight = Midflight(self)
        self.entries: dict[str, Entry] = {}
        """Unfinished tasks, and finished ones of which an attempt is still alive."""
        self.ends: dict[str, State] = {}
        self.ended_at: dict[str, float] = {}
        self.known: Mapping[str, object] = ChainMap[str, Any](self.entries, self.ends)
        self.occupants: dict[str, Grant] = {}
        """What is held from outside, by name."""
        self.groups: dict[str, Group] = {}
        self.counts = dict.fromkeys(State, 0)
        self.now = float("-inf")
        self.paused_since: float | None = None
        self.draining_since: float | None = None
        self.out: list[Instruction] = []
        self._next_token = first_token
        self._arrivals = 0
        self._agenda: deque[Callable[[], None]] = deque()

    def work_off(self) -> None:
        """Do what follows from what was done."""
        while self._agenda:
            self._agenda.popleft()()

    # -- submission -------------------------------------------------------------------------

    def submit(self, stimulus: s.Submit) -> None:
        """Take in tasks, all or none."""
        parent: Attempt | None = None
        if stimulus.parent is not None:
            parent = self.current(stimulus.parent, stimulus.token, stimulus)
            if parent is None:
                return
        if self.draining_since is not None and parent is None:
            raise ShuttingDown("this run takes no new tasks: it was asked to drain or shut down")
        if stimulus.group and not stimulus.group.strip():
            raise BlankId(f"a group needs a name that is not blank, not {stimulus.group!r}")
        if (stimulus.fail_fast or stimulus.deadline is not None) and not stimulus.group:
            raise InvalidOption("fail_fast and a group deadline need a group")
        if stimulus.deadline is not None and not stimulus.deadline >= 0:
            raise InvalidOption(
                f"the group's deadline is {stimulus.deadline}; it must be 0 or more"
            )
        check_submission(stimulus.tasks, self.known, self.occupants, self.table)
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
            if isinstance(task.deadline, float):
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
            self.enqueue(entry)

    def enqueue(self, entry: Entry) -> None:
        """Let a ready task wait for claims and a slot."""
        self._arrivals += 1
        entry.waiter = Waiter(
            entry,
            entry.needs,
            self.admission.profile(entry.amounts, entry.kin, needed=entry.needed),
            self.admission.turn,
            start_key(entry, len(self.entries), self._arrivals),
        )
        self.admission.enqueue(entry.waiter)

    def start(self, entry: Entry, grant: Grant) -> None:
        """Begin an attempt with what was granted."""
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

    def ended(self, stimulus: s.Ended) -> None:
        """An attempt reports its end."""
        _check_report(stimulus)
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
            status = State(stimulus.status)
            if status is State.FAILED:
                wait = entry.task.retry.wait(entry.attempts, stimulus.chance)
                self._failed(entry, stimulus.error, State.FAILED, max(wait, stimulus.retry_after))
            else:
                self._settle(entry, status, stimulus.error, "")

    def gone(self, stimulus: s.Gone) -> None:
        """Nothing of an attempt is left."""
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

    def reports(self, stimulus: s.Reports) -> None:
        """Several of both, before anything starts."""
        for report in stimulus.reports:
            _check_report(report)
        for report in stimulus.reports:
            if isinstance(report, s.Ended):
                self.ended(report)
            else:
                self.gone(report)
            self.work_off()

    def _close(self, attempt: Attempt) -> None:
        """The outcome of an attempt is decided: it may ask for nothing more."""
        attempt.ended = True
        if attempt.timeout is not None:
            self.timers.drop(attempt.timeout)
        if attempt.requests:
            self.midflight.abandon(attempt)
        if attempt.entry.children:
            for child in list(attempt.entry.children.values()):
                self.stop(child, State.CANCELLED, "its parent ended")

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
        self.stop(entry, State.TIMED_OUT, "its deadline passed")

    def _group_deadline_passed(self, group: Group, now: float) -> None:
        group.deadline = None
        for entry in list(group.members.values()):
            self.stop(entry, State.TIMED_OUT, f"the deadline of group {group.name!r} passed")

    def stop(self, entry: Entry, end: State, cause: str) -> None:
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
        if entry.retry_timer is not None:
            self.timers.drop(entry.retry_timer)
        if entry.deadline is not None:
            self.timers.drop(entry.deadline)
        self.enter(entry, end, None)
        task_id = entry.task.id
        self.ends[task_id] = end
        self.ended_at[task_id] = self.now
        self.out.append(
            Settle(task_id, end, entry.attempts, entry.started_at, self.now, error, cause)
        )
        count_claims(entry, -1)
        if entry.attempt is None:
            self._forget(entry)
        if (
            entry.dependents
            or entry.parent is not None
            or entry.group is not None
            or task_id in self.midflight.awaited
        ):
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
        self.midflight.task_ended(task_id)
        if entry.parent is not None and entry.parent.entry.children is not None:
            entry.parent.entry.children.pop(task_id, None)
        group = entry.group
        if group is not None:
            del group.members[task_id]
            if group.fail_fast and end in _FAILURES:
                for member in list(group.members.values()):
                    self.stop(member, State.CANCELLED, f"{task_id!r} did not succeed")
            if not group.members:
                self.timers.drop(group.deadline)
                self.groups.pop(group.name, None)

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
            self.counts[old] -= 1
            if entry.story is None:
                entry.story = [entry.since, old]
            else:
                entry.story += (entry.since, old)
        self.counts[state] += 1
        entry.state = state
        entry.since = self.now
        if detail is not None:
            self.out.append(Change(entry.task.id, state, detail))


def _check_report(report: s.Ended | s.Gone) -> None:
    """Raise for a report that says something impossible."""
    if not isinstance(report, (s.Ended, s.Gone)):
        raise InvalidOption(f"{report!r} is no report of an attempt")
    if isinstance(report, s.Gone):
        return
    if report.status not in _ATTEMPT_ENDS:
        ends = " or ".join(sorted(_ATTEMPT_ENDS))
        raise InvalidOption(f"an attempt ends as {ends}, not as {report.status!r}")
    if not isinstance(report.chance, (int, float)) or not 0 <= report.chance < 1:
        raise InvalidOption(f"the chance of a backoff lies in [0, 1), not at {report.chance!r}")
    if not isinstance(report.error, ErrorRecord | None):
        raise InvalidOption(f"the error of an attempt is an ErrorRecord, not {report.error!r}")
    seconds(report.retry_after, "retry_after")


def _known(state: State | None, default: State | None = None) -> State:
    if state is not None:
        return state
    assert default is not None
    return default

"""One run: the lifecycle of its tasks.

Everything here changes state and appends instructions to `out`. Nothing here decides what starts;
that is `admission`.

What the end of a task means for others (dependents, its group, a parent, those that wait for it) is
put on an agenda and worked through before anything starts. So a chain of a million dependents
needs no recursion, and no task starts that is about to be skipped or cancelled.

`states` is the table of transitions; `enter` is the only place that changes a state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial

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
from interlock.kernel.order import count_claims, first_come_rank, start_rank
from interlock.kernel.records import Attempt, Entry, ExternalHold, Group, Request, Story
from interlock.kernel.requests import Requests
from interlock.kernel.restore import Restorer
from interlock.kernel.states import FIRST_STATES, FOLLOWERS
from interlock.kernel.submission import check_submission, raise_tails
from interlock.kernel.table import Table
from interlock.kernel.timers import Timers
from interlock.kernel.waiters import ProxyWaiter, Rank, Traits, Waiter
from interlock.model.duration import seconds
from interlock.model.outcome import EndedBy, ErrorRecord, State
from interlock.model.task import Task

_FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.CONFLICTED})
_ATTEMPT_ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.CONFLICTED})
_REMEMBERED = 10_000
"""How many distinct ranks are shared before all of them are forgotten."""


class KernelRun:
    """The lifecycle of every task of one run."""

    def __init__(
        self,
        table: Table,
        first_token: int,
        first_come: bool,
        zombies_hold_slots: bool,
        max_ended: int | None = None,
    ) -> None:
        self.table = table
        self._rank = first_come_rank if first_come else start_rank
        self.admission = Admission(table, first_come, zombies_hold_slots)
        self.timers = Timers()
        self.requests = Requests(self)
        self.restorer = Restorer(self)
        self.entries: dict[str, Entry] = {}
        """Unfinished tasks, and finished ones of which an attempt has not exited yet."""
        self.ends: dict[str, State] = {}
        self.ended_at: dict[str, float] = {}
        self.max_ended = max_ended
        """So many ended tasks are remembered; None: all. An id that is forgotten is free again, and
        a task that names it as a dependency is rejected."""
        self._ended_ids: deque[str] = deque()
        """Those that can be forgotten, in the order in which nothing was left of them."""
        self.external_holds: dict[str, ExternalHold] = {}
        """What is held from outside the run, by name."""
        self.groups: dict[str, Group] = {}
        self.counts = dict.fromkeys((state.value for state in State), 0)
        self.now = float("-inf")
        self.paused_since: float | None = None
        self.draining_since: float | None = None
        self.out: list[Instruction] = []
        self._next_token = first_token
        self._arrivals = 0
        self._ranks: dict[Rank, Rank] = {}
        """Equal ranks are one object: a queue of a million tasks has few distinct ones."""
        self.agenda: deque[Entry] = deque()
        """Tasks that have ended and whose end concerns others."""

    def drain_agenda(self) -> None:
        """Do all that follows from the ends of tasks, and from what ends because of that."""
        while self.agenda:
            self._after_settling(self.agenda.popleft())

    # -- submission -------------------------------------------------------------------------

    def submit(self, stimulus: s.Submit) -> None:
        """Take in tasks, all of them or none."""
        parent: Attempt | None = None
        if stimulus.parent is not None:
            parent = self.current(stimulus.parent, stimulus.token, stimulus)
            if parent is None:
                return
        if self.draining_since is not None and parent is None:
            raise ShuttingDown("this run takes no new tasks: it is draining or shutting down")
        if stimulus.group and not stimulus.group.strip():
            raise BlankId(f"a group needs a name that is not blank, not {stimulus.group!r}")
        if (stimulus.fail_fast or stimulus.deadline is not None) and not stimulus.group:
            raise InvalidOption("fail_fast and a group deadline need a group")
        if stimulus.deadline is not None and not stimulus.deadline >= 0:
            raise InvalidOption(
                f"the group's deadline is {stimulus.deadline}; it must be 0 or more"
            )
        restored = self.restorer.check(stimulus) if stimulus.past else ()
        check_submission(stimulus.tasks, self, restored)
        batch = {task.id: self._entry(task, parent) for task in stimulus.tasks}
        if parent is not None:
            self.requests.reject_deadlocked_children(parent, batch)
        self._add(stimulus, batch)

    def _entry(self, task: Task, parent: Attempt | None) -> Entry:
        table, profile = self.table, self.admission.plain
        needs, amounts = table.resolve(task.claims)
        patterned = bool(table.pattern_places) and table.has_pattern(needs)
        if amounts or patterned or parent is not None:
            kin = parent.ancestry() if parent is not None else ()
            profile = self.admission.profile(Traits(amounts, kin, patterned=patterned))
        entry = Entry(task, needs, profile)
        if parent is not None:
            entry.own.parent = parent
        return entry

    def _add(self, stimulus: s.Submit, batch: dict[str, Entry]) -> None:
        self.entries.update(batch)
        linked = False
        for entry in batch.values():
            count_claims(entry.needs, 1)
            if entry.task.after:
                linked = True
                self._link(entry)
        if linked:
            raise_tails(batch, self.entries)
        group = self._group(stimulus) if stimulus.group else None
        for entry in batch.values():
            task, parent = entry.task, entry.extras.parent
            if group is not None:
                entry.own.group = group
                group.members[task.id] = entry
            if parent is not None:
                own = parent.entry.own
                own.children = own.children or {}
                own.children[task.id] = entry
            if isinstance(task.deadline, float):
                entry.own.deadline = self.timers.set(
                    self.now + task.deadline, partial(self.deadline_passed, entry)
                )
        if stimulus.past:
            self.restorer.restore_tasks(stimulus, batch)
        for entry in batch.values():
            if entry.task.after:
                failed = next((d for d in entry.task.after if self._did_not_succeed(d)), None)
                if failed is not None:
                    self._settle(entry, State.SKIPPED, None, failed)
                    continue
                if entry.extras.missing:
                    self.enter(entry, State.BLOCKED, "")
                    continue
            if entry.extras.retry_at > self.now:
                self._back_off(entry, "the run was resumed")
            else:
                self._make_ready(entry)

    def _link(self, entry: Entry) -> None:
        """Note a new task with the unfinished tasks it comes after."""
        for dependency in entry.task.after:
            before = self.entries.get(dependency)
            if before is not None and dependency not in self.ends:
                entry.own.missing += 1
                if before.own.dependents is None:
                    before.own.dependents = []
                before.own.dependents.append(entry)

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
        """Dependencies and backoff are done: the task waits for claims and a slot."""
        # That a task waits from the moment it was submitted goes without saying.
        self.enter(entry, State.WAITING, None if entry.state is None else "")
        if entry.extras.paused_since is None:
            self.enqueue(entry)

    def enqueue(self, entry: Entry) -> None:
        """Put a ready task into the queue for claims and a slot."""
        self._arrivals += 1
        rank = self._rank(entry, len(self.entries))
        if len(self._ranks) > _REMEMBERED:
            self._ranks.clear()
        admission = self.admission
        # An entry is its own waiter the first time. Lines and heaps may still know that wait, so
        # when it waits again a new waiter stands for it.
        waiter: Waiter = entry
        if entry.turn:
            waiter = ProxyWaiter(entry, entry.needs, entry.profile, admission.turn)
            entry.own.proxy_waiter = waiter
        waiter.turn = admission.turn
        if entry.extras.is_awaited:
            waiter.profile = admission.profile(entry.profile.traits._replace(is_awaited=True))
        admission.enqueue(waiter, self._ranks.setdefault(rank, rank), self._arrivals)

    def start(self, waiter: Waiter) -> None:
        """Begin an attempt: it holds what the waiter waited for."""
        entry: Entry = waiter.owner
        now = self.now
        entry.attempts += 1
        token = self.new_token()
        entry.attempt = attempt = Attempt(entry, token, now)
        self.admission.take(attempt, waiter, now)
        self.enter(entry, State.RUNNING, None)
        timeout = entry.task.timeout
        if timeout is not None:
            attempt.timeout = self.timers.set(now + timeout, partial(self._timeout_passed, attempt))
        self.out.append(Start(entry.task.id, entry.attempts, token))

    def new_token(self) -> int:
        """Return a fencing token, larger than all before."""
        token = self._next_token
        self._next_token += 1
        return token

    # -- ending -----------------------------------------------------------------------------

    def ended(self, stimulus: s.Ended) -> None:
        """Take in that an attempt has ended."""
        _check_report(stimulus)
        attempt = self._alive(stimulus.task_id, stimulus.token, stimulus)
        if attempt is None:
            return
        # Its outcome may have been decided already, by a timeout or a cancellation. Then this
        # report only says that it has exited.
        decided = attempt.ended
        if not decided:
            self._close(attempt)
        if stimulus.gone:
            self._release(attempt)
        elif not decided:
            self.admission.make_zombie(attempt)
        if decided:
            return
        entry, status = attempt.entry, stimulus.status
        if status is State.SUCCEEDED:
            self._settle(entry, status, stimulus.error, "")
        elif status == State.FAILED:
            wait = entry.task.retry.wait(entry.attempts, stimulus.chance)
            self._failed(entry, stimulus.error, State.FAILED, max(wait, stimulus.retry_after))
        else:
            self._settle(entry, State(status), stimulus.error, "")

    def gone(self, stimulus: s.Gone) -> None:
        """Take in that an attempt has exited: all its threads and processes have ended."""
        attempt = self._alive(stimulus.task_id, stimulus.token, stimulus)
        if attempt is None:
            return
        if not attempt.ended:
            # It exited without a report: its worker was lost.
            self._close(attempt)
            self._release(attempt)
            lost = ErrorRecord("WorkerLost", "the attempt exited without reporting an outcome")
            wait = attempt.entry.task.retry.wait(attempt.entry.attempts, 0.0)
            self._failed(attempt.entry, lost, State.FAILED, wait)
        else:
            self._release(attempt)

    def reports(self, stimulus: s.Reports) -> None:
        """Take in several of both before anything starts."""
        for report in stimulus.reports:
            _check_report(report)
        for report in stimulus.reports:
            if isinstance(report, s.Ended):
                self.ended(report)
            else:
                self.gone(report)
            self.drain_agenda()

    def _close(self, attempt: Attempt) -> None:
        """The outcome of an attempt is decided: end its requests and its children."""
        attempt.ended = True
        if attempt.timeout is not None:
            self.timers.drop(attempt.timeout)
        if attempt.requests:
            self.requests.abandon(attempt)
        children = attempt.entry.extras.children
        if children:
            for child in list(children.values()):
                self.stop(child, State.CANCELLED, "its parent ended")

    def _release(self, attempt: Attempt) -> None:
        """An attempt has exited: release what it held."""
        entry = attempt.entry
        entry.attempt = None
        self.admission.release(attempt)
        if self.requests.extended:
            self.requests.forget(attempt)
        if entry.state is State.RUNNING:
            return  # The caller decides next what becomes of it.
        if entry.is_over:
            self._forget(entry)
        # Its backoff was over before its last attempt had exited: now it may wait for claims.
        elif entry.state is State.RETRYING and entry.extras.retry_timer is None:
            self._make_ready(entry)

    def remember_end(self, task_id: str) -> None:
        """A task has ended, and no attempt of it is alive: from now on it may be forgotten.

        Called only if there is a `max_ended`.
        """
        self._ended_ids.append(task_id)

    def forget_oldest(self, most: int) -> None:
        """Remember no more than so many ended tasks.

        The kernel does this itself, at the end of each `handle`: a replay of the same stimuli
        forgets the same ids at the same time. Not earlier, because a submission looks at the ends
        of its dependencies while some of its tasks may already be ending.
        """
        while len(self._ended_ids) > most:
            oldest = self._ended_ids.popleft()
            del self.ends[oldest], self.ended_at[oldest]

    def _forget(self, entry: Entry) -> None:
        """Drop a task that is over and of which no attempt is left."""
        self.table.forget(entry.needs)
        if not entry.profile.count:
            self.admission.forget_profile(entry.profile)
        del self.entries[entry.task.id]
        if self.max_ended is not None:
            self.remember_end(entry.task.id)

    def _failed(self, entry: Entry, error: ErrorRecord | None, end: State, wait: float) -> None:
        """An attempt failed or timed out: try again after a wait, or end the task."""
        own = entry.own
        own.error = error
        final = error is not None and not error.retryable
        if final or entry.attempts >= entry.task.retry.attempts:
            self._settle(entry, end, error, "")
            return
        own.retry_at = self.now + wait
        self._back_off(entry, f"attempt {entry.attempts} {end}")

    def _back_off(self, entry: Entry, why: str) -> None:
        own = entry.own
        own.retry_timer = self.timers.set(own.retry_at, partial(self._backoff_over, entry))
        self.enter(entry, State.RETRYING, None)
        self.out.append(Change(entry.task.id, State.RETRYING, why, own.retry_at))

    def _backoff_over(self, entry: Entry, now: float) -> None:
        entry.own.retry_timer = None
        # While the last attempt is a zombie, `_release` does this when it has exited.
        if entry.attempt is None:
            self._make_ready(entry)

    def _timeout_passed(self, attempt: Attempt, now: float) -> None:
        entry = attempt.entry
        self.out.append(Stop(entry.task.id, attempt.token, "timed out"))
        self._close(attempt)
        self.admission.make_zombie(attempt)
        error = ErrorRecord("TimedOut", f"attempt {entry.attempts} exceeded its timeout")
        self._failed(entry, error, State.TIMED_OUT, entry.task.retry.wait(entry.attempts, 0.0))

    def deadline_passed(self, entry: Entry, now: float) -> None:
        """The deadline of a task has passed, which covers all its attempts."""
        entry.own.deadline = None
        self.stop(entry, State.TIMED_OUT, "its deadline passed", "task_deadline")

    def _group_deadline_passed(self, group: Group, now: float) -> None:
        group.deadline = None
        for entry in list(group.members.values()):
            self.stop(entry, State.TIMED_OUT, "the deadline of its group passed", "run_deadline")

    def stop(self, entry: Entry, end: State, cause: str, ended_by: EndedBy = "") -> None:
        """End a task from outside, whatever its state is."""
        if entry.is_over:
            return
        attempt = entry.attempt
        if attempt is not None and not attempt.ended:
            self.out.append(Stop(entry.task.id, attempt.token, cause))
            self._close(attempt)
            self.admission.make_zombie(attempt)
        self._settle(entry, end, entry.extras.error, cause, ended_by)

    def _settle(
        self,
        entry: Entry,
        end: State,
        error: ErrorRecord | None,
        cause: str,
        ended_by: EndedBy = "",
    ) -> None:
        """Give a task its one outcome, and put what follows for others on the agenda."""
        waiter = entry.waiter
        if waiter is not None:
            self.admission.withdraw(waiter)
        self.enter(entry, end, None)
        task_id, now = entry.task.id, self.now
        self.ends[task_id] = end
        self.ended_at[task_id] = now
        self.out.append(
            Settle(task_id, end, entry.attempts, entry.started_at, now, error, cause, ended_by)
        )
        count_claims(entry.needs, -1)
        if entry.attempt is None:
            self._forget(entry)
        # Most tasks have neither extras nor anything that waits for them: no agenda for those.
        if not entry.is_plain:
            extras = entry.extras
            if extras.retry_timer is not None:
                self.timers.drop(extras.retry_timer)
            if extras.deadline is not None:
                self.timers.drop(extras.deadline)
            self.agenda.append(entry)
        elif task_id in self.requests.awaited:
            self.agenda.append(entry)

    def _after_settling(self, entry: Entry) -> None:
        """Do what the end of one task means for dependents, requests, parent and group."""
        end, task_id, extras = entry.state, entry.task.id, entry.extras
        if extras.dependents:
            dependents, extras.dependents = extras.dependents, None
            for dependent in dependents:
                self._dependency_ended(dependent, end is State.SUCCEEDED, task_id)
        self.requests.task_ended(task_id)
        parent = extras.parent
        if parent is not None and parent.entry.extras.children is not None:
            parent.entry.extras.children.pop(task_id, None)
        group = extras.group
        if group is not None:
            del group.members[task_id]
            if group.fail_fast and end in _FAILURES:
                for member in list(group.members.values()):
                    self.stop(member, State.CANCELLED, f"{task_id!r} did not succeed")
            if not group.members:
                self.timers.drop(group.deadline)
                self.groups.pop(group.name, None)

    def _dependency_ended(self, entry: Entry, succeeded: bool, task_id: str) -> None:
        if entry.state is not State.BLOCKED:
            return
        if not succeeded:
            self._settle(entry, State.SKIPPED, None, task_id)
            return
        entry.extras.missing -= 1
        if not entry.extras.missing:
            self._make_ready(entry)

    # -- looking up -------------------------------------------------------------------------

    @property
    def open_requests(self) -> Iterable[Request]:
        """The requests in mid-flight that have not been answered."""
        return self.requests.waiting

    def unfinished(self, task_id: str) -> Entry:
        """Return the entry of an unfinished task."""
        entry = self.entries.get(task_id)
        if entry is None or task_id in self.ends:
            if task_id in self.ends:
                raise UnknownTask(f"task {task_id!r} has already ended as {self.ends[task_id]}")
            raise UnknownTask(f"no task of this run has the id {task_id!r}")
        return entry

    def _alive(self, task_id: str, token: int, stimulus: s.Stimulus) -> Attempt | None:
        """Return the attempt with that token unless it has exited."""
        entry = self.entries.get(task_id)
        attempt = entry.attempt if entry is not None else None
        if attempt is None or attempt.token != token:
            self.out.append(Refused(task_id, token, s.STIMULUS_NAMES[type(stimulus)]))
            return None
        return attempt

    def current(self, task_id: str, token: int, stimulus: s.Stimulus) -> Attempt | None:
        """Return the attempt with that token if its outcome is still open."""
        attempt = self._alive(task_id, token, stimulus)
        if attempt is not None and attempt.ended:
            self.out.append(Refused(task_id, token, s.STIMULUS_NAMES[type(stimulus)]))
            return None
        return attempt

    def enter(self, entry: Entry, state: State, detail: str | None) -> None:
        """Put a task into a state. `detail` is None if another instruction reports the change."""
        old, counts = entry.state, self.counts
        # By value: an Enum computes its hash anew each time, a str keeps it.
        followers = FIRST_STATES if old is None else FOLLOWERS[old._value_]
        if state._value_ not in followers:
            raise IllegalTransition(entry.task.id, str(old), str(state), _history(entry.story))
        if old is not None:
            counts[old._value_] -= 1
            entry.story = (entry.since, old, entry.story)
        counts[state._value_] += 1
        entry.state = state
        entry.since = self.now
        if detail is not None:
            self.out.append(Change(entry.task.id, state, detail))


def _history(story: Story | None) -> list[str]:
    """Return the states a task has been in, oldest first."""
    lines: list[str] = []
    while story is not None:
        at, state, story = story
        lines.insert(0, f"{at:g}: {state}")
    return lines


def _check_report(report: s.Ended | s.Gone) -> None:
    """Raise for a report that cannot be true."""
    if isinstance(report, s.Gone):
        return
    if not isinstance(report, s.Ended):
        raise InvalidOption(f"{report!r} is not a report of an attempt")
    if report.status is not State.SUCCEEDED and report.status not in _ATTEMPT_ENDS:
        ends = " or ".join(sorted(_ATTEMPT_ENDS))
        raise InvalidOption(f"an attempt ends as {ends}, not as {report.status!r}")
    chance, error = report.chance, report.error
    if chance != 0.0 and (not isinstance(chance, (int, float)) or not 0 <= chance < 1):
        raise InvalidOption(f"chance is {chance!r}; it must be at least 0 and below 1")
    if error is not None and not isinstance(error, ErrorRecord):
        raise InvalidOption(f"the error of an attempt is an ErrorRecord, not {error!r}")
    if report.retry_after != 0.0:
        seconds(report.retry_after, "retry_after")

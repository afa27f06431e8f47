"""What the journal knows of tasks that a program submits again.

Code is not stored, so a resumed run needs its program: it submits the same tasks again, and each is
compared with what the journal knows under its id. A task that had ended has its outcome at once.
One that had not continues with the attempts, deadlines and answers it has had. The fingerprint
decides whether it is the same task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from interlock.errors import ChangedTask
from interlock.journal.agent_identity import agent_name
from interlock.journal.schema.own_records import NotStored
from interlock.journal.state.run_state import RunState
from interlock.journal.state.task_state import TaskState
from interlock.kernel import stimuli as s
from interlock.model.event import Event
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.usage import NO_USAGE, Usage

WhenChanged = Literal["refuse", "rerun"]
WhenInterrupted = Literal["rerun", "ask", "fail"]


CUT_OFF_AT_MOST = 3
"""How often a task may be cut off before it fails: it may be what ends the coordinator."""


def fold_run(started_at: float, events: Iterable[Event]) -> RunState:
    """The state of a run that is resumed, from all of its events."""
    state = RunState(started_at, keeps="everything", on_unknown=_refuse_unknown)
    state.take_all(events)
    for task in state.tasks.values():
        if task.outcome is not None and isinstance(task.outcome.result, NotStored):
            # It succeeded, but its result is lost: it has to run again.
            task.outcome, task.attempts, task.state = None, 0, State.WAITING
    return state


def _refuse_unknown(task_id: str) -> TaskState | None:
    raise KeyError(f"the journal tells of a task that was never submitted: {task_id!r}")


def kernel_past(task: TaskState, attempts: int, paused: bool) -> s.Past:
    """What the kernel has to know of a task that is submitted again, with so many attempts.

    A program that allows fewer attempts than the task has had allows it one more.
    """
    had = min(task.attempts, attempts - 1)
    return s.Past(had, task.first_start, task.retry_at, task.deadline_at, task.error, paused)


class EarlierSuccess(NamedTuple):
    """A task that succeeded in an earlier run."""

    fingerprint: str
    outcome: Outcome[Any]


class KnownTasks:
    """The tasks of earlier coordinators, by id and by idempotency key.

    `past` is the state of the run that is resumed, if it is; `inherited` has the successes of the
    closed runs that this one continues, and `by_key` finds the success of a key in any run.
    """

    def __init__(
        self,
        fingerprint: Callable[[Task], str],
        past: RunState | None = None,
        inherited: Mapping[str, EarlierSuccess] | None = None,
        by_key: Callable[[str], Outcome[Any] | None] = lambda _key: None,
        when_changed: WhenChanged = "refuse",
        asks: bool = False,
    ) -> None:
        self.fingerprint = fingerprint
        self.past = past
        self._known: dict[str, TaskState] = past.tasks if past is not None else {}
        self._inherited = inherited or {}
        self._by_key = by_key
        self._when_changed = when_changed
        self._asks = asks
        self._brought: set[str] = set()
        self._keys = _by_key(self._known)

    def is_free(self, task_id: str) -> bool:
        """Whether only the journal knows a task of this id: the program may submit it."""
        return task_id in self._known and task_id not in self._brought

    def as_known(self, task: Task) -> Task:
        """The task under the id that its key has in this run, with the priority it was given."""
        if task.key is not None:
            name = self._keys.get(task.key, task.id)
            if name != task.id and self.is_free(name):
                task = task.replace(id=name)
        known = self._known.get(task.id)
        if known is not None and known.new_priority is not None and task.id not in self._brought:
            task = task.replace(priority=known.new_priority)
        return task

    def find(self, task: Task) -> Outcome[Any] | s.Past | None:
        """The outcome of an ended task, or the past of an unfinished one; None for a new one."""
        if task.id in self._brought:
            return None
        known = self._known.get(task.id)
        if known is not None:
            # The fingerprint from then: one of the stored task would lack its code and its secrets.
            if known.fingerprint != self.fingerprint(task):
                self._check_change(task, known)
                return None
            return known.outcome or kernel_past(
                known, task.retry.attempts, self.asks_about(task.id)
            )
        done = self._inherited.get(task.id)
        if done is not None and done.fingerprint == self.fingerprint(task):
            return done.outcome
        return None if task.key is None else self._by_key(task.key)

    def _check_change(self, task: Task, known: TaskState) -> None:
        if known.outcome is None and self._when_changed == "rerun":
            return
        changed = ", ".join(_differences(known.submission, task)) or "the settings of its agent"
        state = "had ended" if known.outcome is not None else "had not finished"
        rerun = "" if known.outcome is not None else ", or use on_changed='rerun'"
        raise ChangedTask(
            f"task {task.id!r} is not what it was when this run was interrupted ({changed} "
            f"changed; it {state}). Give it another id, start a new run without resume{rerun}"
        )

    def asks_about(self, task_id: str) -> bool:
        """Whether a person has to decide if a task that was cut off runs again."""
        known = self._known.get(task_id)
        if known is None or known.outcome is not None:
            return False
        return self._asks and known.was_cut_off and not known.may_run_again

    def is_same(self, task: Task) -> bool | None:
        """Whether a task is the one that the journal knows by its id; None if it knows none."""
        known = self._known.get(task.id)
        return None if known is None else known.fingerprint == self.fingerprint(task)

    def usage(self, task_id: str) -> Usage:
        """What the attempts at a task have used."""
        known = self._known.get(task_id)
        return NO_USAGE if known is None else known.usage

    def group_until(self, tasks: Iterable[Task]) -> float | None:
        """The deadline of tasks that were submitted together, as it was set first; in the run."""
        known = (self._known[task.id].group_until for task in tasks if task.id in self._known)
        return min((each for each in known if each is not None), default=None)

    def bring(self, task_id: str) -> None:
        """Note that the program has submitted a task."""
        self._brought.add(task_id)

    def forget(self, task_id: str) -> None:
        """The id of an ended task may be used again; one that the journal knows stays known."""
        if task_id not in self._known and task_id not in self._inherited:
            self._brought.discard(task_id)

    def answers(self, task_id: str) -> list[tuple[str, str]]:
        """The questions of an attempt that was cut off, with their answers.

        The caller removes those that it uses.
        """
        known = self._known.get(task_id)
        return known.answers if known is not None and known.was_cut_off else []

    @property
    def unbound(self) -> tuple[str, ...]:
        """The unfinished tasks that the program has not submitted again."""
        return tuple(
            task_id
            for task_id, known in self._known.items()
            if known.outcome is None and task_id not in self._brought
        )


def _by_key(known: Mapping[str, TaskState]) -> dict[str, str]:
    """The task that each idempotency key stands for.

    With `max_outcomes` a key that was forgotten can have been submitted again. The first success
    counts, so that a program that submits the same again finds its tasks in the same order.
    """
    found: dict[str, str] = {}
    for task_id, task in known.items():
        key = task.submission.key
        if key is None or task.parent is not None:
            continue
        earlier = known[found[key]].outcome if key in found else None
        if earlier is None or not earlier.succeeded:
            found[key] = task_id
    return found


def _differences(old: Task, new: Task) -> Iterator[str]:
    """The parts of a task that have changed, as far as the journal can tell."""
    if old.agent != agent_name(new.agent):
        yield "agent"
    for name in ("prompt", "args", "kwargs", "claims"):
        if getattr(old, name) != getattr(new, name):
            yield name

"""What the journal remembers of tasks that a program submits again."""

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
"""How often an attempt at one task may be cut off before it is given up: it may be the cause."""


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


class Done(NamedTuple):
    """A task that succeeded in an earlier run, and what it was."""

    fingerprint: str
    outcome: Outcome[Any]


class KnownTasks:
    """Open tasks, outcomes and keys of earlier coordinators.

    `past` is that of the run that is taken up, `inherited` the successes of a closed run that this
    one goes on from, and `by_key` finds the success of a key in any run.
    """

    def __init__(
        self,
        fingerprint: Callable[[Task], str],
        past: RunState | None = None,
        inherited: Mapping[str, Done] | None = None,
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
        self._keys = {
            known.submission.key: task_id
            for task_id, known in self._known.items()
            if known.submission.key is not None and known.parent is None
        }

    def is_free(self, task_id: str) -> bool:
        """Whether a task of that name is only remembered, so that the program may bring it."""
        return task_id in self._known and task_id not in self._brought

    def as_known(self, task: Task) -> Task:
        """The task under the name that its key has in this run, and as it was steered."""
        if task.key is not None:
            name = self._keys.get(task.key, task.id)
            if name != task.id and self.is_free(name):
                task = task.replace(id=name)
        known = self._known.get(task.id)
        if known is not None and known.new_priority is not None and task.id not in self._brought:
            task = task.replace(priority=known.new_priority)
        return task

    def find(self, task: Task) -> Outcome[Any] | s.Past | None:
        """The outcome that a task has already, or what it has behind it; None if it is new."""
        if task.id in self._brought:
            return None
        known = self._known.get(task.id)
        if known is not None:
            # Not that of the task as it came back: the journal has neither code nor secrets.
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
        changed = ", ".join(_differences(known.submission, task)) or "what its agent is made of"
        state = "had ended" if known.outcome is not None else "had not finished"
        rerun = "" if known.outcome is not None else ", or say on_changed='rerun'"
        raise ChangedTask(
            f"task {task.id!r} is not what it was when this run was left ({changed} changed; it "
            f"{state}). Give it another id, start a new run without resume{rerun}"
        )

    def asks_about(self, task_id: str) -> bool:
        """Whether a person is to say if a task that was cut off runs again."""
        known = self._known.get(task_id)
        if known is None or known.outcome is not None:
            return False
        return self._asks and known.was_cut_off and not known.may_run_again

    def is_same(self, task: Task) -> bool | None:
        """Whether a task is what the journal knows under its id; None if it knows none."""
        known = self._known.get(task.id)
        return None if known is None else known.fingerprint == self.fingerprint(task)

    def usage(self, task_id: str) -> Usage:
        """What attempts at a task have used up."""
        known = self._known.get(task_id)
        return NO_USAGE if known is None else known.usage

    def group_until(self, tasks: Iterable[Task]) -> float | None:
        """When the time of tasks that were submitted together is over, as it was said first."""
        known = (self._known[task.id].group_until for task in tasks if task.id in self._known)
        return min((each for each in known if each is not None), default=None)

    def bring(self, task_id: str) -> None:
        """The program has submitted it."""
        self._brought.add(task_id)

    def forget(self, task_id: str) -> None:
        """The id of an ended task may be used again; one that the journal knows stays known."""
        if task_id not in self._known and task_id not in self._inherited:
            self._brought.discard(task_id)

    def answers(self, task_id: str) -> list[tuple[str, str]]:
        """What a task that was cut off had asked people already, and their answers.

        Whoever uses one takes it out.
        """
        known = self._known.get(task_id)
        return known.answers if known is not None and known.was_cut_off else []

    @property
    def unbound(self) -> tuple[str, ...]:
        """Unfinished tasks that the program has not brought again."""
        return tuple(
            task_id
            for task_id, known in self._known.items()
            if known.outcome is None and task_id not in self._brought
        )


def _differences(old: Task, new: Task) -> Iterator[str]:
    """Which parts of a task are not what they were, as far as the journal can tell."""
    if old.agent != agent_name(new.agent):
        yield "agent"
    for name in ("prompt", "args", "kwargs", "claims"):
        if getattr(old, name) != getattr(new, name):
            yield name

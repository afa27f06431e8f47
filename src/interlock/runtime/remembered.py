"""What the journal remembers of tasks that a program submits again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from interlock.errors import ChangedTask
from interlock.kernel import stimuli as s
from interlock.model.outcome import Outcome
from interlock.model.task import Task
from interlock.runtime.past import Known, Past

WhenChanged = Literal["refuse", "rerun"]
WhenInterrupted = Literal["rerun", "ask", "fail"]


class Done(NamedTuple):
    """A task that succeeded in an earlier run, and what it was."""

    fingerprint: str
    outcome: Outcome[Any]


class Remembered:
    """Open tasks, outcomes and keys of earlier coordinators.

    `past` is that of the run that is taken up and `stored` has the fingerprints of its tasks as
    they were when they were submitted; `inherited` has the successes of a closed run that this
    one goes on from, and `by_key` finds the success of a key in any run.
    """

    def __init__(
        self,
        fingerprint: Callable[[Task], str],
        past: Past | None = None,
        stored: Mapping[str, str] | None = None,
        inherited: Mapping[str, Done] | None = None,
        by_key: Callable[[str], Outcome[Any] | None] = lambda _key: None,
        when_changed: WhenChanged = "refuse",
        asks: bool = False,
    ) -> None:
        self.fingerprint = fingerprint
        self.past = past
        self._known: dict[str, Known] = past.tasks if past is not None else {}
        self._stored = stored or {}
        self._inherited = inherited or {}
        self._by_key = by_key
        self._when_changed = when_changed
        self._asks = asks
        self._brought: set[str] = set()

    def is_free(self, task_id: str) -> bool:
        """Whether a task of that name is only remembered, so that the program may bring it."""
        return task_id in self._known and task_id not in self._brought

    def find(self, task: Task) -> Outcome[Any] | s.Past | None:
        """The outcome that a task has already, or what it has behind it; None if it is new."""
        known = self._known.get(task.id)
        if known is not None and task.id not in self._brought:
            # Not that of the task as it came back: the journal has neither code nor secrets.
            if self._stored.get(task.id) != self.fingerprint(task):
                self._check_change(task, known)
                return None
            return known.outcome or known.before(self.asks_about(task.id))
        done = self._inherited.get(task.id)
        if done is not None and done.fingerprint == self.fingerprint(task):
            return done.outcome
        return None if task.key is None else self._by_key(task.key)

    def _check_change(self, task: Task, known: Known) -> None:
        if known.outcome is None and self._when_changed == "rerun":
            return
        what = "has ended" if known.outcome is not None else "was not finished"
        raise ChangedTask(
            f"task {task.id!r} {what} in this run with another agent, prompt, arguments or claims; "
            "give it another id, start a new run, or (if it was not finished) take the run up "
            "with changed='rerun'"
        )

    def asks_about(self, task_id: str) -> bool:
        """Whether a person is to say if a task that was cut off runs again."""
        known = self._known.get(task_id)
        return self._asks and known is not None and known.outcome is None and known.was_cut_off

    def bring(self, task_id: str) -> None:
        """The program has submitted it."""
        self._brought.add(task_id)

    def answers(self, task_id: str) -> list[tuple[str, str]]:
        """What a task that was cut off had asked people already, and their answers."""
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

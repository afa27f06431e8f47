"""The tasks of a run, by id and by idempotency key; in a long-lived run only the latest.

What a run remembers of an ended task, with `max_outcomes=N`:

| tasks ended since | outcome | handle by id | the id | the idempotency key |
|---|---|---|---|---|
| fewer than N | kept | kept | taken, can be depended on | returns the handle |
| up to N + REMEMBERED_IDS | gone | UnknownTask | taken, can be depended on | returns the handle |
| more | gone | UnknownTask | free; with a journal still taken | in the journal, if there is one |

So memory is bounded, whatever the number of tasks. A handle that the program holds keeps its
outcome for as long as the program holds it. A task of which an attempt is still alive is never
forgotten, because the attempt is shown under its id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from interlock.errors import UnknownTask
from interlock.journal.sqlite import SqliteJournal
from interlock.model.claim import Claim
from interlock.model.outcome import Outcome
from interlock.runtime.handle import Handle
from interlock.runtime.submission.generations import Generations

REMEMBERED_IDS = 10_000
"""How many more tasks may end before the id of a task whose outcome is gone is forgotten too.

Large enough that an id that is used twice by mistake is noticed; about 3 MB at most.
"""


class PastTasks(Protocol):
    """What the journal knows of earlier runs, as far as it concerns ids."""

    def is_free(self, task_id: str) -> bool:
        """Whether a task of that id is only known from the journal, and may be submitted."""

    def forget(self, task_id: str) -> None:
        """The id is free again."""


def is_stored(disk: SqliteJournal | None, task_id: str) -> bool:
    """Whether a journal on disk has a task of the current run under an id."""
    if disk is None or disk.run is None:
        return False
    try:
        disk.read.task(disk.run, task_id)
    except UnknownTask:
        return False
    return True


class TaskTable:
    """Owns the handles of a run."""

    def __init__(
        self,
        max_outcomes: int | None,
        past: PastTasks | None,
        has_ended: Callable[[str], bool],
        is_alive: Callable[[str], bool],
        is_stored: Callable[[str], bool] = lambda _task_id: False,
    ) -> None:
        self._max_outcomes = max_outcomes
        self._past = past
        self._has_ended = has_ended
        self._is_alive = is_alive
        self._is_stored = is_stored
        """Whether the journal has a task of this run under an id."""
        self._handles: dict[str, Handle[Any]] = {}
        self._by_key: dict[str, Handle[Any]] = {}
        self._unsettled = 0
        self._ended: deque[str] = deque()
        """Tasks whose outcomes are kept, in the order in which they ended."""
        self._forgotten: deque[tuple[str, str | None]] = deque()
        """Ids and keys of tasks whose outcomes are gone, in the same order."""
        most = None if max_outcomes is None else REMEMBERED_IDS
        self.ids = Generations(self._is_submitted, most)
        """Gives out ids that no task has."""
        self._groups = 0
        self._limits: dict[str, int] = {}
        """How many groups of each name have had a limit."""
        self.has_forgotten_ids = False
        """Whether an id may have been used that is not known here any more."""

    # -- looking up -------------------------------------------------------------------------

    def get(self, task_id: str) -> Handle[Any] | None:
        """The handle of a task, or None."""
        return self._handles.get(task_id)

    def named(self, task_id: str) -> Handle[Any]:
        """The handle of a task; raises UnknownTask."""
        handle = self._handles.get(task_id)
        if handle is not None:
            return handle
        if self._has_ended(task_id):
            raise UnknownTask(f"task {task_id!r} has ended and was forgotten")
        hint = ""
        if self._max_outcomes is not None and len(self._ended) >= self._max_outcomes:
            hint = f", or it was forgotten long ago (max_outcomes is {self._max_outcomes})"
        raise UnknownTask(f"no task of this run has the id {task_id!r}{hint}")

    def has(self, task_id: str) -> bool:
        """Whether the id is taken, also if the task's outcome is gone."""
        return task_id in self._handles or self._has_ended(task_id)

    def _is_submitted(self, task_id: str) -> bool:
        """Whether this process has submitted a task with that id. An earlier one may have."""
        if self._past is not None and self._past.is_free(task_id):
            return False
        if task_id in self._handles or self._has_ended(task_id):
            return True
        return self.has_forgotten_ids and self.is_only_stored(task_id)

    def submitted(self) -> Iterator[Handle[Any]]:
        """The handles of tasks that this process has submitted; it may have resumed a run."""
        past = self._past
        return (each for each in self if past is None or not past.is_free(each.task.id))

    def is_only_stored(self, task_id: str) -> bool:
        """Whether an id was used so long ago in this run that only the journal knows it."""
        if not self.has_forgotten_ids or self.has(task_id):
            return False
        is_free = self._past is not None and self._past.is_free(task_id)
        return not is_free and self._is_stored(task_id)

    def with_key(self, key: str) -> Handle[Any] | None:
        """The handle of the task that was submitted with an idempotency key, or None."""
        return self._by_key.get(key)

    def claims_of(self, task_id: str) -> tuple[Claim, ...] | None:
        """The claims of a task; None if it has no handle, or not yet."""
        handle = self._handles.get(task_id)
        return None if handle is None else handle.task.claims

    def outcome_of(self, task_id: str) -> Outcome[Any]:
        """The outcome of a task that has ended."""
        outcome = self.named(task_id).outcome
        assert outcome is not None, f"{task_id!r} has not ended"
        return outcome

    def __iter__(self) -> Iterator[Handle[Any]]:
        return iter(self._handles.values())

    @property
    def all_settled(self) -> bool:
        """Whether every task has its outcome."""
        return not self._unsettled

    # -- changing ---------------------------------------------------------------------------

    def add(self, handles: Sequence[Handle[Any]]) -> None:
        """Tasks that were submitted."""
        for handle in handles:
            self._handles[handle.task.id] = handle
            self._unsettled += 1
        self.ids.submitted(each.task.id for each in handles)

    def recall(self, handles: Iterable[Handle[Any]]) -> None:
        """Tasks that were submitted and whose outcome was known beforehand."""
        for handle in handles:
            self._handles[handle.task.id] = handle
            self.ids.submitted((handle.task.id,))
            if self._max_outcomes is not None:
                self._remember_end(handle.task.id, self._max_outcomes)

    def restore(self, handles: Iterable[Handle[Any]]) -> None:
        """Ended tasks of a run that is resumed.

        They are not forgotten before the program submits them again: a parent that runs again
        looks for its children here.
        """
        for handle in handles:
            self._handles[handle.task.id] = handle

    def bind_keys(self, keys: Mapping[str, Handle[Any]]) -> None:
        """From now on these keys stand for these tasks."""
        self._by_key.update(keys)

    def settle(self, outcome: Outcome[Any]) -> None:
        """A task has its one outcome, which is durable: tell those that wait for it."""
        self._unsettled -= 1
        self._handles[outcome.task_id].settle(outcome)
        if self._max_outcomes is not None:
            self._remember_end(outcome.task_id, self._max_outcomes)

    def _remember_end(self, task_id: str, most: int) -> None:
        self._ended.append(task_id)
        if len(self._ended) > most:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest = self._ended.popleft()
        if self._is_alive(oldest):
            self._ended.append(oldest)  # its attempt is still shown, under its id
            return
        handle = self._handles.pop(oldest, None)
        key = None if handle is None else handle.task.key
        # Without a key and a journal there is nothing left to forget: the kernel has its own list.
        if key is not None or self._past is not None:
            self._forgotten.append((oldest, key))
            # Well before it is true: the kernel forgets a little earlier, when it decides an end.
            self.has_forgotten_ids |= len(self._forgotten) > REMEMBERED_IDS // 2
            if len(self._forgotten) > REMEMBERED_IDS:
                self._forget_id(*self._forgotten.popleft())

    def _forget_id(self, task_id: str, key: str | None) -> None:
        if key is not None:
            self._by_key.pop(key, None)
        if self._past is not None:
            self._past.forget(task_id)

    def give_up(self, error: BaseException) -> None:
        """Tell everything that waits for an outcome that there will be none."""
        for handle in self._handles.values():
            handle.give_up(error)

    def fresh_group(self) -> str:
        """A name that no group has."""
        self._groups += 1
        return f"group-{self._groups}"

    def fresh_limit(self, name: str) -> str:
        """A name for the limit of a group that no limit of an earlier group has."""
        self._limits[name] = count = self._limits.get(name, 0) + 1
        return name if count == 1 else f"{name}~{count}"

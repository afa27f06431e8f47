"""Events on their way into the tables: rows of the story, and what they change in the state.

Done on the thread that appends, at once: what an event tells of may change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlock.journal import queries
from interlock.journal.batch import Batch
from interlock.journal.codec import Codec
from interlock.journal.history import Samples, labels_of
from interlock.journal.rows import Row, checksum, column, row
from interlock.journal.schema import seq
from interlock.journal.tasks import agent_name
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task

COLUMNS = (
    "state",
    "since",
    "agent",
    "labels",
    "key",
    "fingerprint",
    "attempts",
    "token",
    "submitted",
    "settled",
    "started_at",
)
_STATES = frozenset({Kind.BLOCKED, Kind.WAITING, Kind.RETRYING, Kind.NEEDS_YOU, Kind.RUNNING})


class Fold:
    """What is remembered of a run between its events."""

    def __init__(self, run: int, codec: Codec) -> None:
        self._run = run
        self._codec = codec
        self._tasks: dict[str, Task] = {}
        """Those that have no outcome yet, of this process."""
        self._started: dict[str, float] = {}

    def batch(self, events: Iterable[Event]) -> Batch:
        """All that is to be written of these events, as one."""
        turn = _Turn(self, self._run, self._codec)
        for event in events:
            turn.take(event)
        return turn.batch()

    def submitted(self, task: Task) -> None:
        self._tasks[task.id] = task

    def started(self, task_id: str, at: float) -> None:
        self._started[task_id] = at

    def settled(self, task_id: str) -> tuple[Task | None, float | None]:
        return self._tasks.pop(task_id, None), self._started.pop(task_id, None)


class _Turn:
    def __init__(self, fold: Fold, run: int, codec: Codec) -> None:
        self._fold = fold
        self._run = run
        self._codec = codec
        self._files: dict[str, bytes] = {}
        self._events: list[tuple[Any, ...]] = []
        self._tasks: dict[str, dict[str, Any]] = {}
        self._keys: list[tuple[Any, ...]] = []
        self._samples = Samples()
        self._ended: float | None = None

    def take(self, event: Event) -> None:
        data, kind, at = event.data, event.kind, event.at
        same = None
        if data is None:
            text = None
        elif type(data) is Task:
            text, same = self._codec.task(data)
        else:
            text = self._codec.dumps_leniently(data)
        place = seq(self._run, event.number)
        task_id = self._text(event.task_id)
        kept = row(text, self._files, place, at, kind._value_, task_id)
        self._events.append((place, at, kind._value_, task_id, *kept))
        if kind is Kind.SUBMITTED:
            self._submitted(event, task_id, same)
        elif kind is Kind.STARTED:
            self._fold.started(task_id, at)
            self._change(
                task_id,
                state=State.RUNNING._value_,
                since=at,
                started_at=at,
                attempts=_field(data, "attempt"),
                token=_field(data, "token"),
            )
        elif kind in _STATES:
            self._change(task_id, state=kind._value_, since=at)
        elif kind is Kind.SETTLED or kind is Kind.INHERITED:
            self._settled(event, task_id, kept)
        elif kind is Kind.RUN_ENDED:
            self._ended = at

    def _submitted(self, event: Event, task_id: str, same: str | None) -> None:
        task = event.data if type(event.data) is Task else _field(event.data, "task")
        if not isinstance(task, Task):
            return
        if same is None:
            same = self._codec.task(task)[1]
        self._fold.submitted(task)
        labels = self._codec.dumps_leniently(task.labels) if task.labels else None
        self._change(
            task_id,
            state=(State.BLOCKED if task.after else State.WAITING)._value_,
            since=event.at,
            agent=self._text(agent_name(task.agent)),
            labels=labels,
            key=None if task.key is None else self._text(task.key),
            fingerprint=same,
            submitted=event.number,
        )

    def _settled(self, event: Event, task_id: str, kept: Row) -> None:
        outcome = event.data
        task, started = self._fold.settled(event.task_id)
        if not isinstance(outcome, Outcome):
            return
        self._change(
            task_id,
            state=outcome.status._value_,
            since=event.at,
            attempts=outcome.attempts,
            settled=event.number,
        )
        if outcome.status is not State.SUCCEEDED:
            return
        if task is None or task.key is not None:
            # Of a task that an earlier process submitted, only the table knows the key.
            again = checksum(kept.data, kept.file, task_id)
            self._keys.append((event.at, kept.data, kept.file, again, self._run, task_id))
        if task is not None and started is not None:
            agent = self._text(agent_name(task.agent))
            for label in labels_of(task.labels):
                self._samples.add(agent, self._text(label), event.at - started, event.at)

    def _change(self, task_id: str, **values: Any) -> None:
        change = self._tasks.setdefault(task_id, {})
        for name, value in values.items():
            if value is not None:
                change[name] = value

    def _text(self, text: str) -> str:
        return column(self._codec.redaction.text(text))

    def batch(self) -> Batch:
        batch = Batch(self._files)
        batch.add_rows(queries.ADD_EVENTS, self._events)
        folded = [
            (self._run, task_id, *map(change.get, COLUMNS))
            for task_id, change in self._tasks.items()
        ]
        batch.add_rows(queries.FOLD_TASKS, folded)
        for each in self._keys:
            batch.add(queries.ADD_KEY, each)
        for sample in self._samples:
            batch.add(queries.ADD_TO_HISTORY, sample)
        if self._ended is not None:
            batch.add(queries.END_RUN, (self._ended, self._run))
        return batch


def _field(data: Any, name: str) -> Any:
    return data.get(name) if isinstance(data, dict) else getattr(data, name, None)

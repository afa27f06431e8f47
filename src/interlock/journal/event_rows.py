"""Events as rows: of the table of events, and of the table of tasks, which the fold keeps current.

This happens on the thread that appends, at once: the data of an event may change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from interlock.journal import queries
from interlock.journal.agent_identity import agent_name
from interlock.journal.batch import Batch, Values
from interlock.journal.history import Samples, labels_of
from interlock.journal.rows import SMALL, checksum, column, spilled
from interlock.journal.schema.codec import EVENT_TAGS, Codec
from interlock.journal.state.run_state import RunState
from interlock.journal.state.task_state import TaskState
from interlock.journal.tables import seq
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task

_OF_TASKS = frozenset(
    {
        *(Kind.SUBMITTED, Kind.STARTED, Kind.GRANTED, Kind.SETTLED, Kind.REUSED),
        *(Kind.BLOCKED, Kind.WAITING, Kind.RETRYING, Kind.NEEDS_YOU, Kind.RUNNING),
    }
)
"""The kinds of events that change a row of the table of tasks."""


class _Submitted(NamedTuple):
    """The columns that a task has from its submission on, as they are written."""

    agent: str
    labels: str | None
    key: str | None
    fingerprint: str
    samples: list[str]
    """The labels under which the durations of its attempts count."""


_UNKNOWN = (None, None, None, None)


class EventRows:
    """Makes batches out of the events of one run. Knows its unfinished tasks meanwhile."""

    def __init__(self, run: int, started_at: float, codec: Codec) -> None:
        self.run = run
        self.codec = codec
        self.submitted: dict[str, _Submitted] = {}
        """The unfinished tasks that this process has seen submitted."""
        self.state = RunState(started_at, keeps="nothing", on_unknown=self._begin)

    def batch(self, events: Iterable[Event]) -> Batch:
        """Everything that is to be written of these events, in one piece."""
        turn = _Turn(self)
        for event in events:
            turn.take(event)
        return turn.finish()

    def forget(self, task_id: str) -> None:
        """Drop a task that has ended: a run may last for ever."""
        self.submitted.pop(task_id, None)
        self.state.tasks.pop(task_id, None)

    def _begin(self, task_id: str) -> TaskState:
        """A task that an earlier process has submitted: the table has the rest of it."""
        task = self.state.tasks[task_id] = TaskState(task_id)
        return task


class _Turn:
    def __init__(self, rows: EventRows) -> None:
        self._rows = rows
        self._run = rows.run
        self._codec = rows.codec
        self._state = rows.state
        self._batch = Batch()
        self._events: list[Values] = []
        self._changed: dict[str, str] = {}
        """The tasks with a new row, by id, and how that is written."""
        self._ended: list[str] = []
        self._samples = Samples()
        self._hides = bool(rows.codec.redaction)

    def take(self, event: Event) -> None:
        number, at, kind, task_id, data = event
        fingerprint = None
        if data is None:
            text = None
        elif type(data) is Task:
            text, fingerprint = self._codec.task(data)
        else:
            text = self._codec.dumps_leniently(data)
        place = seq(self._run, number)
        if self._hides or not task_id.isascii():
            task_id = self._text(task_id)
        tag = EVENT_TAGS[kind]
        file = None
        if text is not None and len(text) > SMALL:
            text, file = spilled(text, self._batch.files)
        at = float(at)  # as it comes out of the table, for the checksum
        sum_ = checksum(text, file, place, at, tag, task_id)
        self._events.append((place, at, tag, task_id, text, file, sum_))
        if kind in _OF_TASKS:
            self._state.take(event)
            self._changed[event.task_id] = task_id
            if kind is Kind.SUBMITTED and fingerprint is not None:
                self._submitted(data, task_id, fingerprint)
            elif kind is Kind.SETTLED or kind is Kind.REUSED:
                self._settled(event, task_id, text, file)
        elif kind is Kind.RUN_ENDED:
            self._batch.add(queries.END_RUN, (at, self._run))

    def _submitted(self, task: Task, task_id: str, fingerprint: str) -> None:
        labels = self._codec.dumps_leniently(dict(task.labels)) if task.labels else None
        samples = [self._text(each) for each in labels_of(task.labels)] if task.labels else [""]
        key = None if task.key is None else self._text(task.key)
        agent = self._text(agent_name(task.agent))
        self._rows.submitted[task.id] = _Submitted(agent, labels, key, fingerprint, samples)

    def _settled(self, event: Event, task_id: str, data: str | None, file: str | None) -> None:
        self._ended.append(event.task_id)
        if not isinstance(event.data, Outcome) or event.data.status is not State.SUCCEEDED:
            return
        submitted = self._rows.submitted.get(event.task_id)
        if submitted is None or submitted.key is not None:
            # Of a task that an earlier process submitted, only the table knows the key.
            self._batch.add(queries.ADD_KEY, (event.at, data, file, self._run, task_id))
        started = self._state.tasks[event.task_id].attempt_started_at
        if submitted is not None and started is not None:
            for label in submitted.samples:
                self._samples.add(submitted.agent, label, event.at - started, event.at)

    def _text(self, text: str) -> str:
        return column(self._codec.redaction.text(text))

    def finish(self) -> Batch:
        batch = self._batch
        batch.rows[queries.ADD_EVENTS] = self._events
        batch.rows[queries.FOLD_TASKS] = [
            self._row(task_id, written)
            for task_id, written in self._changed.items()
            if task_id in self._state.tasks
        ]
        for sample in self._samples:
            batch.add(queries.ADD_TO_HISTORY, sample)
        for task_id in self._ended:
            task = self._state.tasks.get(task_id)
            if task is None or task.outcome is not None:  # it may have been submitted again
                self._rows.forget(task_id)
        return batch

    def _row(self, task_id: str, written: str) -> Values:
        """A row of the table. Where it has nothing, the table keeps what it has."""
        task = self._state.tasks[task_id]
        outcome = task.outcome
        columns: tuple[Any, ...] = (self._rows.submitted.get(task_id) or _UNKNOWN)[:4]
        return (
            self._run,
            written,
            None if task.state is None else task.state._value_,
            task.since,
            *columns,
            task.attempt if outcome is None else outcome.attempts,
            task.token,
            task.submitted,
            task.settled,
            task.attempt_started_at,
        )

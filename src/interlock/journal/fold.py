"""Events on their way into the tables: rows of the story, and what they change in the state.

Done on the thread that appends, at once: what an event tells of may change afterwards.
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
from interlock.journal.tables import seq
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task

_COLUMNS = (
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


class _Known(NamedTuple):
    """What has to be known of a task until it ends."""

    key: str | None
    agent: str
    labels: list[str]


class Fold:
    """What is remembered of a run between its events."""

    def __init__(self, run: int, codec: Codec) -> None:
        self.run = run
        self.codec = codec
        self.known: dict[str, _Known] = {}
        """Those without an outcome that this process has seen submitted."""
        self.started: dict[str, float] = {}

    def batch(self, events: Iterable[Event]) -> Batch:
        """All that is to be written of these events, as one."""
        turn = _Turn(self)
        for event in events:
            turn.take(event)
        return turn.finish()


class _Turn:
    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._run = fold.run
        self._codec = fold.codec
        self._batch = Batch()
        self._events: list[Values] = []
        self._changes: dict[str, dict[str, Any]] = {}
        self._samples = Samples()
        self._hides = bool(fold.codec.redaction)

    def take(self, event: Event) -> None:
        number, at, kind, task_id, data = event
        same = None
        if data is None:
            text = None
        elif type(data) is Task:
            text, same = self._codec.task(data)
        else:
            text = self._codec.dumps_leniently(data)
        place = seq(self._run, number)
        if self._hides or not task_id.isascii():
            task_id = self._text(task_id)
        word = EVENT_TAGS[kind]
        file = None
        if text is not None and len(text) > SMALL:
            text, file = spilled(text, self._batch.files)
        at = float(at)  # as it comes out of the table, for the checksum
        sum_ = checksum(text, file, place, at, word, task_id)
        self._events.append((place, at, word, task_id, text, file, sum_))
        if kind is Kind.SUBMITTED:
            self._submitted(event, task_id, same)
        elif kind is Kind.STARTED:
            self._fold.started[task_id] = at
            change = self._change(task_id, "running", at)
            change["started_at"] = at
            change["attempts"] = _field(data, "attempt")
            change["token"] = _field(data, "token")
        elif kind is Kind.GRANTED:
            if grant := _field(data, "grant"):
                self._changes.setdefault(task_id, {})["token"] = grant
        elif kind in _STATES:
            self._change(task_id, word, at)
        elif kind is Kind.SETTLED or kind is Kind.REUSED:
            self._settled(event, task_id, text, file)
        elif kind is Kind.RUN_ENDED:
            self._batch.add(queries.END_RUN, (at, self._run))

    def _submitted(self, event: Event, task_id: str, same: str | None) -> None:
        task = event.data if same is not None else _field(event.data, "task")
        if not isinstance(task, Task):
            return
        agent = self._text(agent_name(task.agent))
        labels = [self._text(each) for each in labels_of(task.labels)] if task.labels else [""]
        key = None if task.key is None else self._text(task.key)
        self._fold.known[task_id] = _Known(key, agent, labels)
        change = self._change(task_id, "blocked" if task.after else "waiting", event.at)
        change["agent"] = agent
        change["key"] = key
        change["fingerprint"] = same or self._codec.task(task)[1]
        change["submitted"] = event.number
        if task.labels:
            change["labels"] = self._codec.dumps_leniently(dict(task.labels))

    def _settled(self, event: Event, task_id: str, data: str | None, file: str | None) -> None:
        outcome, at = event.data, event.at
        known = self._fold.known.pop(task_id, None)
        started = self._fold.started.pop(task_id, None)
        if not isinstance(outcome, Outcome):
            return
        change = self._change(task_id, outcome.status._value_, at)
        change["attempts"] = outcome.attempts
        change["settled"] = event.number
        if outcome.status is not State.SUCCEEDED:
            return
        if known is None or known.key is not None:
            # Of a task that an earlier process submitted, only the table knows the key.
            self._batch.add(queries.ADD_KEY, (at, data, file, self._run, task_id))
        if known is not None and started is not None:
            for label in known.labels:
                self._samples.add(known.agent, label, at - started, at)

    def _change(self, task_id: str, state: str, since: float) -> dict[str, Any]:
        change = self._changes.get(task_id)
        if change is None:
            change = self._changes[task_id] = {}
        change["state"] = state
        change["since"] = since
        return change

    def _text(self, text: str) -> str:
        return column(self._codec.redaction.text(text))

    def finish(self) -> Batch:
        batch = self._batch
        batch.rows[queries.ADD_EVENTS] = self._events
        batch.rows[queries.FOLD_TASKS] = [
            (self._run, task_id, *map(change.get, _COLUMNS))
            for task_id, change in self._changes.items()
        ]
        for sample in self._samples:
            batch.add(queries.ADD_TO_HISTORY, sample)
        return batch


def _field(data: Any, name: str) -> Any:
    return data.get(name) if isinstance(data, dict) else getattr(data, name, None)

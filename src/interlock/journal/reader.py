"""Reading a journal: from the process that writes it or from any other, while it is written.

Nothing here takes a lock that a writer would notice, and no transaction lasts longer than one
page of rows, so that the log beside the database can be folded into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from interlock.errors import UnknownTask, UsageError
from interlock.journal import opening, queries
from interlock.journal import tables as schema
from interlock.journal.disk import Disk
from interlock.journal.files import Damaged, Files
from interlock.journal.history import Estimate, estimate
from interlock.journal.rows import Row, checksum, column, text_of
from interlock.journal.schema.codec import Codec, UnknownName, kind_of
from interlock.journal.schema.names import FIRST_EVENT_NAMES
from interlock.journal.schema.upcasters import labels_2
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State

PAGE = 1_000
"""So many rows are read at once."""


class Run(NamedTuple):
    """One run in a journal. `no` counts them; `ended_at` is None as long as it is not closed."""

    no: int
    id: str
    started_at: float
    ended_at: float | None
    inherits: str | None
    """The run whose successes it took over."""
    options: Any

    @property
    def is_open(self) -> bool:
        """Whether it goes on, or was cut off."""
        return self.ended_at is None


class TaskRow(NamedTuple):
    """Where a task of a run stands."""

    task_id: str
    state: State
    since: float
    agent: str
    labels: dict[str, str]
    key: str | None
    fingerprint: str
    attempts: int
    token: int
    submitted: int
    """The number of the event with the task itself."""
    settled: int | None
    """The number of the event with its outcome."""
    started_at: float | None
    """When its last attempt began."""


class Status(NamedTuple):
    """A run at a glance."""

    run: Run
    counts: dict[State, int]
    last: int
    """The number of its last event."""


class Success(NamedTuple):
    """What became of an idempotency key."""

    key: str
    run: str
    task_id: str
    fingerprint: str
    outcome: Outcome[Any]


class Reader:
    """Looks into a journal; use it from one thread at a time."""

    def __init__(self, path: str | Path, codec: Codec | None = None) -> None:
        self.path = opening.place(path)
        self._codec = codec or Codec()
        self._files = Files(self.path, Disk())
        self._connection = opening.open_to_read(self.path)

    def close(self) -> None:
        """Close the file. Doing it twice is fine."""
        self._connection.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- runs -------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        return [self._run(found) for found in self._rows(queries.RUNS)]

    def run(self, run_id: str) -> Run:
        """One run by its id."""
        found = self.find_run(run_id)
        if found is None:
            raise UsageError(f"{self.path} has no run {run_id!r}")
        return found

    def find_run(self, run_id: str) -> Run | None:
        """The same, or None if there is none."""
        found = self._rows(queries.RUN, run_id)
        return self._run(found[0]) if found else None

    def last_run(self) -> Run | None:
        """The run that was started last, if there was any."""
        found = self._rows(queries.LAST_RUN)
        return self._run(found[0]) if found else None

    def next_no(self) -> int:
        """The number of the next run."""
        ((found,),) = self._rows(queries.NEXT_RUN_NO)
        return int(found)

    def free_pages(self) -> int:
        """So many pages of the file hold nothing."""
        ((found,),) = self._rows("PRAGMA freelist_count")
        return int(found)

    def last_token(self) -> int:
        """The largest fencing token that any run has given out; 0 if there is none."""
        ((found,),) = self._rows(queries.LAST_TOKEN)
        given = [int(run.options.get("first_token", 1)) - 1 for run in self.runs()]
        return max([int(found or 0), *given])

    def _run(self, found: tuple[Any, ...]) -> Run:
        run = Run(*found[:-1])
        text = self._text(f"run {run.no}", (run.options, None, found[-1]), *_fixed(run))
        return run._replace(options=self._loads(f"run {run.no}", text or "{}"))

    def status(self, run: Run) -> Status:
        """How a run stands now."""
        found = self._rows(queries.COUNTS, run.no)
        counts = {State(state): count for state, count in found}
        return Status(self.run(run.id), counts, self.last(run))

    # -- events -----------------------------------------------------------------------------

    def last(self, run: Run) -> int:
        """The number of the last event of a run; 0 if it has none."""
        ((found,),) = self._rows(queries.LAST_EVENT, *_range(run, 0))
        return 0 if found is None else schema.number(found)

    def events(self, run: Run, since: int = 0, most: int = PAGE) -> list[Event]:
        """The events of a run after a number, at most so many."""
        first, end = _range(run, since)
        return [self._event(found) for found in self._rows(queries.EVENTS, first, end, most)]

    def events_of_kind(self, run: Run, kind: Kind) -> list[Event]:
        """The events of a run that are of a kind there are few of."""
        first, end = _range(run, 0)
        name = kind.value
        before = next((old for old, new in FIRST_EVENT_NAMES.items() if new == name), name)
        found = self._rows(queries.EVENTS_OF_KIND, first, end, name, before, f"{name}/*")
        return [self._event(each) for each in found]

    def all_events(self, run: Run, since: int = 0) -> Iterator[Event]:
        """All events of a run after a number, in order, page by page.

        They count without gaps, but the first ones may be gone where a run is being removed.
        """
        last = 0
        while page := self.events(run, since):
            for event in page:
                if last and event.number != last + 1:
                    raise opening.damaged(self.path, f"event {last + 1} of {run.id} is missing")
                last = event.number
                yield event
            since = last

    def lines(self, run: Run) -> Iterator[str]:
        """A run as lines of JSON: first the run itself, then its events."""
        yield json.dumps({"run": run._asdict()}, ensure_ascii=False)
        first, end = _range(run, 0)
        while page := self._rows(queries.EVENTS, first, end, PAGE):
            for found in page:
                place, at, kind, task_id, *_ = found
                head = {"number": schema.number(place), "at": at, "kind": kind, "task_id": task_id}
                data = self._text(f"event {schema.number(place)}", found[4:], *found[:4])
                yield f'{json.dumps(head, ensure_ascii=False)[:-1]}, "data": {data or "null"}}}'
            first = page[-1][0]

    def _event(self, found: tuple[Any, ...]) -> Event:
        place, at, kind, task_id, *_ = found
        text = self._text(f"event {schema.number(place)}", found[4:], place, at, kind, task_id)
        try:
            data = None if text is None else self._codec.loads(text)
            return Event(schema.number(place), at, kind_of(kind), task_id, data)
        except UnknownName as unknown:
            what = f"event {schema.number(place)}"
            raise opening.unknown(self.path, what, unknown.problem) from unknown

    # -- tasks ------------------------------------------------------------------------------

    def tasks(self, run: Run) -> Iterator[TaskRow]:
        """The tasks of a run as they stand, by id."""
        after = ""
        while page := self._rows(queries.TASKS, run.no, after, PAGE):
            for found in page:
                yield self._task(found)
            after = page[-1][0]

    def task(self, run: Run, task_id: str) -> TaskRow:
        """One task of a run."""
        found = self._rows(queries.TASK, run.no, column(task_id))
        if not found:
            raise UnknownTask(f"run {run.id} has no task {task_id!r}")
        return self._task(found[0])

    def _task(self, found: tuple[Any, ...]) -> TaskRow:
        try:
            row = _task(found)
        except ValueError as error:
            raise opening.damaged(self.path, f"task {found[0]!r}: {error}") from error
        # Of a file that is only read the table is still as 0.1.0 has left it.
        if row.labels and self._format() == 1:
            return row._replace(labels=labels_2(row.labels))
        return row

    def _format(self) -> int:
        ((found,),) = self._rows("PRAGMA user_version")
        return int(found)

    def outcome(self, run: Run, task_id: str) -> Outcome[Any] | None:
        """How a task of a run ended; None if it has not."""
        return self.outcome_of(run, self.task(run, task_id))

    def outcome_of(self, run: Run, row: TaskRow) -> Outcome[Any] | None:
        """The same for a task that was looked up before."""
        task_id, settled = row.task_id, row.settled
        if settled is None:
            return None
        found = self._rows(queries.EVENT, schema.seq(run.no, settled))
        event = self._event(found[0]) if found else None
        if event is None or event.task_id != task_id or not isinstance(event.data, Outcome):
            raise opening.damaged(self.path, f"event {settled} is not the outcome of {task_id!r}")
        return event.data

    def success(self, key: str) -> Success | None:
        """The success of an idempotency key, in whatever run it was."""
        found = self._rows(queries.SUCCESS, column(key))
        if not found:
            return None
        text = self._text(f"the outcome of key {key!r}", found[0][5:], *found[0][:5])
        _, run, task_id, fingerprint, *_ = found[0]
        return Success(key, run, task_id, fingerprint, self._loads(f"key {key!r}", text or "null"))

    def estimate(self, agent: str, label: str = "") -> Estimate | None:
        """How long an agent takes, as far as known; with a label `name=value`, for such tasks."""
        found = self._rows(queries.ESTIMATE, column(agent), column(label))
        return estimate(*found[0]) if found else None

    # -- records ----------------------------------------------------------------------------

    def record(self, namespace: str, key: str, otherwise: Any = None) -> Any:
        """What was put under a key."""
        found = self._rows(queries.GET_RECORD, column(namespace), column(key))
        return self._record(namespace, found[0])[1] if found else otherwise

    def records(self, namespace: str) -> Iterator[tuple[str, Any]]:
        """All records of a namespace, by key."""
        after = ""
        while page := self._rows(queries.RECORDS, column(namespace), after, PAGE):
            for found in page:
                yield self._record(namespace, found)
            after = page[-1][0]

    def _record(self, namespace: str, found: tuple[Any, ...]) -> tuple[str, Any]:
        key, *kept = found
        text = self._text(f"record {key!r} of {namespace!r}", kept, namespace, key)
        return key, self._loads(f"record {key!r} of {namespace!r}", text or "null")

    # -- rows -------------------------------------------------------------------------------

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except opening.WHILE_READING as error:
            raise opening.unreadable(self.path, error) from error

    def _text(self, what: str, kept: Any, *columns: Any) -> str | None:
        try:
            return text_of(Row(*kept), self._files, *columns)
        except Damaged as error:
            raise opening.damaged(self.path, f"{what}: {error}") from error

    def _loads(self, what: str, text: str) -> Any:
        try:
            return self._codec.loads(text)
        except UnknownName as unknown:
            raise opening.unknown(self.path, what, unknown.problem) from unknown


def _fixed(run: Run) -> tuple[Any, ...]:
    """What never changes of a run, for its checksum."""
    return run.no, run.id, run.started_at, run.inherits


def run_row(run: Run) -> tuple[Any, ...]:
    """A run as its table keeps it; `options` is JSON here."""
    return (*run, checksum(run.options, None, *_fixed(run)))


def _task(found: tuple[Any, ...]) -> TaskRow:
    row = TaskRow(*found)
    return row._replace(
        state=State(row.state or State.WAITING),
        labels=json.loads(found[4]) if found[4] else {},
        agent=row.agent or "",
        fingerprint=row.fingerprint or "",
        attempts=row.attempts or 0,
        token=row.token or 0,
        submitted=row.submitted or 0,
    )


def _range(run: Run, since: int) -> tuple[int, int]:
    return schema.seq(run.no, since), schema.seq(run.no + 1, 0)

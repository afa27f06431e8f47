"""Read a journal, in the process that writes it or in any other, while it is being written.

No lock is taken that a writer would notice, and no transaction lasts longer than one page of rows,
so that SQLite can checkpoint its write-ahead log.
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
from interlock.journal.schema.codec import UNDECODABLE, Codec, UnknownName, kind_of
from interlock.journal.schema.names import FIRST_EVENT_NAMES
from interlock.journal.schema.upcasters import labels_2
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State

PAGE = 1_000
"""How many rows are read at once."""


class Run(NamedTuple):
    """One run in a journal. `no` counts them; `ended_at` is None until it is closed."""

    no: int
    id: str
    started_at: float
    ended_at: float | None
    inherits: str | None
    """The run that it continues, whose successes it reuses."""
    options: Any

    @property
    def is_open(self) -> bool:
        """Whether it has not been closed: it is active, or was interrupted."""
        return self.ended_at is None


class TaskRow(NamedTuple):
    """One task of a run, as the table of tasks has it."""

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
    """A run, and how many of its tasks are in which state."""

    run: Run
    counts: dict[State, int]
    last: int
    """The number of its last event."""


class Success(NamedTuple):
    """The success that an idempotency key stands for."""

    key: str
    run: str
    task_id: str
    fingerprint: str
    outcome: Outcome[Any]


class Reader:
    """Reads a journal. Use it from one thread at a time."""

    def __init__(self, path: str | Path, codec: Codec | None = None) -> None:
        self.path = opening.place(path)
        self._codec = codec or Codec()
        self._files = Files(self.path, Disk())
        self._connection = opening.open_to_read(self.path)

    def close(self) -> None:
        """Close the file. Repeating this does nothing."""
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
        """The same; None if there is no such run."""
        found = self._rows(queries.RUN, run_id)
        return self._run(found[0]) if found else None

    def last_run(self) -> Run | None:
        """The run that was started last; None if there is none."""
        found = self._rows(queries.LAST_RUN)
        return self._run(found[0]) if found else None

    def next_no(self) -> int:
        """The number of the next run."""
        ((found,),) = self._rows(queries.NEXT_RUN_NO)
        return int(found)

    def free_pages(self) -> int:
        """How many pages of the file are unused."""
        ((found,),) = self._rows("PRAGMA freelist_count")
        return int(found)

    def last_token(self) -> int:
        """The largest fencing token that any run has issued; 0 if there is none."""
        ((found,),) = self._rows(queries.LAST_TOKEN)
        given = [int(run.options.get("first_token", 1)) - 1 for run in self.runs()]
        return max([int(found or 0), *given])

    def _run(self, found: tuple[Any, ...]) -> Run:
        run = Run(*found[:-1])
        text = self._text(f"run {run.no}", (run.options, None, found[-1]), *_fixed(run))
        return run._replace(options=self._loads(f"run {run.no}", text or "{}"))

    def status(self, run: Run) -> Status:
        """The current state of a run."""
        found = self._rows(queries.COUNTS, run.no)
        counts = {State(state): count for state, count in found}
        return Status(self.run(run.id), counts, self.last(run))

    # -- events -----------------------------------------------------------------------------

    def last(self, run: Run) -> int:
        """The number of the last event of a run; 0 if it has none."""
        ((found,),) = self._rows(queries.LAST_EVENT, *_range(run, 0))
        return 0 if found is None else schema.number(found)

    def events(self, run: Run, since: int = 0, most: int = PAGE) -> list[Event]:
        """The events of a run after a number, at most `most` of them."""
        first, end = _range(run, since)
        return [self._event(found) for found in self._rows(queries.EVENTS, first, end, most)]

    def events_of_kind(self, run: Run, kind: Kind) -> list[Event]:
        """The events of one kind, of which a run should have few."""
        first, end = _range(run, 0)
        name = kind.value
        before = next((old for old, new in FIRST_EVENT_NAMES.items() if new == name), name)
        found = self._rows(queries.EVENTS_OF_KIND, first, end, name, before, f"{name}/*")
        return [self._event(each) for each in found]

    def all_events(self, run: Run, since: int = 0) -> Iterator[Event]:
        """All events of a run after a number, in order, read page by page.

        A gap in their numbers is damage; only the first ones may be missing, of a run that is being
        pruned.
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
        except UNDECODABLE as error:
            what = f"event {schema.number(place)} cannot be decoded: {error}"
            raise opening.damaged(self.path, what) from error

    # -- tasks ------------------------------------------------------------------------------

    def tasks(self, run: Run) -> Iterator[TaskRow]:
        """The tasks of a run in their current state, ordered by id."""
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
        # A file that is only read has not been migrated: its table is as 0.1.0 left it.
        if row.labels and self._format() == 1:
            return row._replace(labels=labels_2(row.labels))
        return row

    def _format(self) -> int:
        ((found,),) = self._rows("PRAGMA user_version")
        return int(found)

    def outcome(self, run: Run, task_id: str) -> Outcome[Any] | None:
        """The outcome of a task; None if it has not ended."""
        return self.outcome_of(run, self.task(run, task_id))

    def outcome_of(self, run: Run, row: TaskRow) -> Outcome[Any] | None:
        """The same, for a row that has been read already."""
        task_id, settled = row.task_id, row.settled
        if settled is None:
            return None
        found = self._rows(queries.EVENT, schema.seq(run.no, settled))
        event = self._event(found[0]) if found else None
        if event is None or event.task_id != task_id or not isinstance(event.data, Outcome):
            raise opening.damaged(self.path, f"event {settled} is not the outcome of {task_id!r}")
        return event.data

    def success(self, key: str) -> Success | None:
        """The success of an idempotency key, in any run."""
        found = self._rows(queries.SUCCESS, column(key))
        if not found:
            return None
        text = self._text(f"the outcome of key {key!r}", found[0][5:], *found[0][:5])
        _, run, task_id, fingerprint, *_ = found[0]
        return Success(key, run, task_id, fingerprint, self._loads(f"key {key!r}", text or "null"))

    def estimate(self, agent: str, label: str = "") -> Estimate | None:
        """How long an agent takes, if known; with a label `name=value`, for tasks that have it."""
        found = self._rows(queries.ESTIMATE, column(agent), column(label))
        return estimate(*found[0]) if found else None

    # -- records ----------------------------------------------------------------------------

    def record(self, namespace: str, key: str, otherwise: Any = None) -> Any:
        """The value of a key."""
        found = self._rows(queries.GET_RECORD, column(namespace), column(key))
        return self._record(namespace, found[0])[1] if found else otherwise

    def records(self, namespace: str) -> Iterator[tuple[str, Any]]:
        """All keys and values of a namespace, ordered by key."""
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
        except UNDECODABLE as error:
            raise opening.damaged(self.path, f"{what} cannot be decoded: {error}") from error


def _fixed(run: Run) -> tuple[Any, ...]:
    """The columns of a run that never change, for its checksum."""
    return run.no, run.id, run.started_at, run.inherits


def run_row(run: Run) -> tuple[Any, ...]:
    """The row of a run; `options` is JSON here."""
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

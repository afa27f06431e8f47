"""The journal in a SQLite file: acknowledged events are durable, and other processes can read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from interlock.errors import InterlockError
from interlock.journal import opening, queries, retention
from interlock.journal.agents_lock import AgentsLock
from interlock.journal.batch import Batch
from interlock.journal.disk import Disk
from interlock.journal.event_rows import EventRows
from interlock.journal.lock import JournalLock
from interlock.journal.namespace import Namespace
from interlock.journal.reader import Reader, Run, run_row
from interlock.journal.schema.codec import Codec
from interlock.journal.store import Durability, Store
from interlock.journal.writer import OnTrouble, Writer, WriterThread
from interlock.model.event import Event, Kind

_NONE: Mapping[str, type] = MappingProxyType({})

MakeWriter = Callable[[Store, OnTrouble], Writer]


def _ignore_trouble(_: Exception | None) -> None:
    return


class SqliteJournal:
    """A journal and, after `begin()`, one run in it. Create it on the event loop that uses it.

    `known` are the classes of what events carry, by their names in a journal; `redact` lists
    secrets, which are replaced by `***` in whatever is written. `read` gives access to what is in
    the file.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Durability = "full",
        redact: Iterable[str] = (),
        known: Mapping[str, type] = _NONE,
        on_trouble: OnTrouble = _ignore_trouble,
        disk: Disk | None = None,
        writer: MakeWriter = WriterThread,
    ) -> None:
        # One path for one file: the lock is beside the file, not beside a link to it.
        self.path = opening.place(path)
        self.codec = Codec(known, redact)
        self.run: Run | None = None
        self._rows: EventRows | None = None
        self._last = 0
        self._closed = False
        opening.make_folder(self.path)
        self._lock = JournalLock(self.path)
        self.agents = AgentsLock(self.path)
        try:
            self._store = Store(self.path, durability, disk or Disk())
            self.read = Reader(self.path, self.codec)
            self._writer = writer(self._store, on_trouble)
        except BaseException:
            self._lock.release()
            raise

    async def begin(
        self,
        run_id: str,
        started_at: float,
        *,
        inherits: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Run:
        """Begin a run; if there is one with this id, reopen it and continue in it."""
        known = self.read.find_run(run_id)
        no = self.read.next_no() if known is None else known.no
        batch = Batch()
        kept = self.codec.dumps(options or {}, "options")
        row = run_row(Run(no, run_id, float(started_at), None, inherits, kept))
        batch.add(queries.BEGIN_RUN, row)
        await self._writer.put(batch)
        self.run = self.read.run(run_id)
        self._last = self.read.last(self.run)
        self._rows = EventRows(no, self.run.started_at, self.codec)
        return self.run

    # -- the port ---------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> Awaitable[None]:
        """Append the events of one turn. They are durable when the awaitable is done."""
        if self._rows is None:
            raise InterlockError("begin() a run before its events are appended")
        batch = self._rows.batch(events)
        if events:
            self._last = events[-1].number
        return self._writer.put(batch)

    def since(self, number: int, most: int = 1000) -> Sequence[Event]:
        """The durable events after this number, at most `most` of them."""
        if self.run is None or self._closed:
            return ()
        found = self.read.events(self.run, number, most)
        missed = found[0].number - number - 1 if found else 0
        if missed:
            first = found[0]
            gap = Event(first.number - 1, first.at, Kind.MISSED, "", {"events": missed})
            return [gap, *found][:most]
        return found

    @property
    def last(self) -> int:
        """The number of the last event that was appended."""
        return self._last

    def close(self) -> None:
        """Write what is left, and release the journal. Raises if that is not possible."""
        self._closed = True
        try:
            self._writer.close()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the file as a killed process would, without writing what is left."""
        self.read.close()
        self._store.close()
        self._lock.release()

    # -- besides the run --------------------------------------------------------------------

    def records(self, name: str) -> Namespace:
        """Durable records that outlive the run."""
        return Namespace(name, self.codec, self._writer, self.read)

    async def prune(self, *, now: float, keep: int | None = None, age: float | None = None) -> int:
        """Remove the oldest closed runs: all but the last `keep`, and those ended `age` s ago.

        The outcomes of idempotency keys, records and history stay. Returns how many were removed.
        """
        doomed = retention.doomed(self.read.runs(), self.run, now, keep, age)
        for run in doomed:
            for batch in retention.removal(self.read, run):
                await self._writer.put(batch)
        before, free = -1, 0
        while before != free:
            before = free
            await self._writer.put(retention.Sweep(self._store.files))
            free = self.read.free_pages()
        return len(doomed)

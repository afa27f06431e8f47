"""Pruning: old runs are removed in small pieces, and so are files that no row refers to."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Sequence

from interlock.journal import queries
from interlock.journal import tables as schema
from interlock.journal.batch import Batch
from interlock.journal.disk import Disk
from interlock.journal.files import Files
from interlock.journal.history import KEPT
from interlock.journal.reader import Reader, Run

_PIECE = 5_000
"""How many events are deleted in one transaction: other writes have to wait for it."""
_PAGES = 5_000
"""How many unused pages of the file are given back at once."""


def doomed(
    runs: Sequence[Run], current: Run | None, now: float, keep: int | None, age: float | None
) -> list[Run]:
    """The runs to remove. Never one that is open, or that an open one continues."""
    current_no = -1 if current is None else current.no
    wanted = _wanted(runs)
    closed = [run for run in runs if run.id not in wanted and run.no != current_no]
    surplus = 0 if keep is None else max(0, len(closed) - keep)
    return [
        run
        for index, run in enumerate(closed)
        if index < surplus or (age is not None and (run.ended_at or now) < now - age)
    ]


def _wanted(runs: Sequence[Run]) -> set[str]:
    """The runs that can be resumed, with all runs that they continue."""
    inherits = {run.id: run.inherits for run in runs}
    wanted: set[str] = set()
    for run in runs:
        name: str | None = run.id if run.is_open else None
        while name is not None and name not in wanted:
            wanted.add(name)
            name = inherits.get(name)
    return wanted


def removal(reader: Reader, run: Run) -> Iterator[Batch]:
    """The batches that remove a run. Until the last of them it is listed, with fewer events."""
    first, end = schema.seq(run.no, 0), schema.seq(run.no + 1, 0)
    left = reader.last(run)
    while left > 0:
        batch = Batch()
        batch.add(queries.DELETE_EVENTS, (first, end, _PIECE))
        yield batch
        left -= _PIECE
    batch = Batch()
    batch.add(queries.DELETE_TASKS, (run.no,))
    batch.add(queries.DELETE_RUN, (run.no,))
    yield batch


class Sweep(Batch):
    """Gives space back to the file system, and removes files that no row refers to."""

    def __init__(self, files: Files) -> None:
        super().__init__()
        self._beside = files

    def apply(self, disk: Disk, connection: sqlite3.Connection) -> None:
        disk.execute(connection, queries.FORGET_HISTORY, (KEPT,))

    def afterwards(self, connection: sqlite3.Connection, just_written: Collection[str]) -> None:
        # Nothing depends on this, and the next sweep tries again.
        with contextlib.suppress(OSError, sqlite3.Error):
            named = {name for (name,) in connection.execute(queries.FILES)}
            self._beside.remove_all_but(named | set(just_written))
            # As a script: the vacuum works row by row, and `execute` would fetch only the first.
            connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
            connection.executescript("PRAGMA wal_checkpoint(PASSIVE)")

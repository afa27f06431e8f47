"""What is written in one transaction: all of it or, if anything fails, nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from interlock.journal.disk import Disk

_AT_ONCE = 64
"""Rows in one statement. Python releases its lock for each statement; with a busy event loop it may
wait milliseconds to get it back."""

Values = Sequence[Any]


class Batch:
    """Rows and statements to write, and the files that have to exist before them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.rows: dict[str, list[Values]] = {}
        """Rows for queries with `{rows}` in them. Those of all batches of a commit go together,
        before the statements."""
        self._statements: list[tuple[str, Values]] = []

    def add(self, query: str, values: Values = ()) -> None:
        """Add a statement."""
        self._statements.append((query, values))

    def apply(self, disk: Disk, connection: sqlite3.Connection) -> None:
        """Execute the statements, inside the transaction."""
        for query, values in self._statements:
            disk.execute(connection, query, values)

    def afterwards(self, connection: sqlite3.Connection, just_written: Collection[str]) -> None:
        """Called once the transaction is durable."""


def apply(batches: Sequence[Batch], disk: Disk, connection: sqlite3.Connection) -> None:
    """Execute several batches in one transaction."""
    together: dict[str, list[Values]] = {}
    for batch in batches:
        for query, rows in batch.rows.items():
            together.setdefault(query, []).extend(rows)
    for query, rows in together.items():
        _insert(query, rows, disk, connection)
    for batch in batches:
        batch.apply(disk, connection)


def _insert(query: str, rows: Sequence[Values], disk: Disk, connection: sqlite3.Connection) -> None:
    start, size = 0, _AT_ONCE
    while start < len(rows):
        while size > len(rows) - start:
            size //= 2
        values = [value for row in rows[start : start + size] for value in row]
        disk.execute(connection, _sized(query, size, len(rows[start])), values)
        start += size


@cache
def _sized(query: str, rows: int, columns: int) -> str:
    """The query for this many rows. There are few sizes, so SQLite has the statements prepared."""
    row = "(" + ", ".join("?" * columns) + ")"
    return query.format(rows=", ".join([row] * rows))

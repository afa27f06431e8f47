"""What is written together: all of it or, if anything fails, nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from interlock.journal.disk import Disk

_AT_ONCE = 64
"""Rows in one statement. Python gives up its lock for each statement, and with a busy event loop
it may wait milliseconds until it has it back."""

Values = Sequence[Any]


class Batch:
    """What somebody wants written, and the files that have to be there before."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.rows: dict[str, list[Values]] = {}
        """Rows for queries with `{rows}` in them. Those of all batches of a commit go together,
        before the statements."""
        self._statements: list[tuple[str, Values]] = []

    def add(self, query: str, values: Values = ()) -> None:
        """A statement of its own."""
        self._statements.append((query, values))

    def apply(self, disk: Disk, connection: sqlite3.Connection) -> None:
        """Inside the transaction."""
        for query, values in self._statements:
            disk.execute(connection, query, values)

    def afterwards(self, connection: sqlite3.Connection, just_written: Collection[str]) -> None:
        """When it is there for good."""


def apply(batches: Sequence[Batch], disk: Disk, connection: sqlite3.Connection) -> None:
    """Carry out several batches in a transaction."""
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
    """The query for so many rows. There are a few sizes only, so SQLite knows the statements."""
    row = "(" + ", ".join("?" * columns) + ")"
    return query.format(rows=", ".join([row] * rows))

"""What is written together: all of it or, if anything fails, nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

from interlock.journal.disk import Disk

_AT_ONCE = 64
"""Rows in one statement. Python gives up its lock for each statement, and with a busy event loop
it may wait milliseconds until it has it back."""


class Batch:
    """Statements of one transaction, and the files that have to be there before."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = files or {}
        self._statements: list[tuple[str, Sequence[Any]]] = []

    def add(self, query: str, values: Sequence[Any] = ()) -> None:
        self._statements.append((query, values))

    def add_rows(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Several rows for `{rows}` in a query, in as few statements as may be."""
        start = 0
        while start < len(rows):
            size = _AT_ONCE
            while size > len(rows) - start:
                size //= 2  # only a few sizes, so that SQLite knows the statements
            chunk = rows[start : start + size]
            one = "(" + ", ".join("?" * len(chunk[0])) + ")"
            self.add(
                query.format(rows=", ".join([one] * size)), [v for each in chunk for v in each]
            )
            start += size

    def apply(self, disk: Disk, connection: sqlite3.Connection) -> None:
        """Inside the transaction."""
        for query, values in self._statements:
            disk.execute(connection, query, values)

    def afterwards(self, connection: sqlite3.Connection, just_written: Collection[str]) -> None:
        """When it is there for good."""

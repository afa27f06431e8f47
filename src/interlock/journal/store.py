"""The database file, as its one writer sees it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from interlock.errors import InvalidOption, UnreadableJournal
from interlock.journal import opening, queries
from interlock.journal.batch import Batch, apply
from interlock.journal.disk import Disk
from interlock.journal.files import Files

Durability = Literal["full", "normal"]
"""`full`: what was acknowledged survives a power cut. `normal`: it survives a crash of this
process or its kill; a power cut may take the last seconds, and leaves the rest whole."""

WORTH_ANOTHER_TRY = (sqlite3.OperationalError, OSError)
"""A full disk, an I/O error, a lock: things that can pass. All else is a bug, or damage."""


class Store:
    """Writes batches, each set of them in one transaction. One thread at a time."""

    def __init__(self, path: Path, durability: Durability, disk: Disk) -> None:
        if durability not in ("full", "normal"):
            raise InvalidOption(f"durability is {durability!r}; it can be 'full' or 'normal'")
        self.path = path
        self.disk = disk
        self.files = Files(path, disk)
        self._connection = opening.open_to_write(path, durability, disk)
        # Not before something is written: a journal that turns out to be unreadable stays as it is.
        self._outdated = opening.migrations(opening.format_of(self._connection))
        self._inode = os.stat(path).st_ino
        self._session = uuid.uuid4().hex[:12]
        self._writes = 0
        self._in_doubt = False

    def write(self, batches: Sequence[Batch]) -> None:
        """Write all of them or none. What is WORTH_ANOTHER_TRY is tried again with the same."""
        self._check_that_it_is_still_there()
        name = f"{self._session}-{self._writes}"
        files = {file: data for batch in batches for file, data in batch.files.items()}
        if not (self._in_doubt and self._went_through(name)):
            self._in_doubt = True
            self._transact(name, batches, files)
        self._in_doubt = False
        self._writes += 1
        for batch in batches:
            batch.afterwards(self._connection, files)

    def _went_through(self, name: str) -> bool:
        """Whether a write is in the file although its commit reported an error."""
        return bool(self._connection.execute(queries.LAST_WRITE).fetchone() == (name,))

    def _transact(self, name: str, batches: Sequence[Batch], files: dict[str, bytes]) -> None:
        disk, connection = self.disk, self._connection
        for file, data in files.items():
            self.files.write(file, data)
        try:
            disk.execute(connection, "BEGIN IMMEDIATE")
            self._check_that_nobody_else_writes()
            for statement in self._outdated:
                disk.execute(connection, statement)
            apply(batches, disk, connection)
            disk.execute(connection, queries.NAME_WRITE, (name,))
            disk.commit(connection)
            self._outdated = []
        except Exception as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            if opening.means_damage(error):
                raise opening.damaged(self.path, str(error)) from error
            raise

    def _check_that_it_is_still_there(self) -> None:
        """Writing to a file that was deleted succeeds, and is worth nothing."""
        try:
            same = os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            same = False
        if not same:
            raise UnreadableJournal(
                str(self.path),
                "the file was removed or replaced while it was in use",
                "What was written since is lost; put the file back, or start a new run",
            )

    def _check_that_nobody_else_writes(self) -> None:
        """Whoever wrote last goes on: somebody may have removed the lock file."""
        last = self._connection.execute(queries.LAST_WRITE).fetchone()
        if self._writes and (last is None or not last[0].startswith(f"{self._session}-")):
            raise UnreadableJournal(
                str(self.path),
                "another coordinator has taken it over while it was in use here; its lock file "
                "must have been removed",
                "This one has to end. Never remove the lock file: a dead coordinator's is free",
            )

    def close(self) -> None:
        """Nothing more will be written."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

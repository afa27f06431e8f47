"""The database file, from the side of its one writer."""

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
"""`full`: what was acknowledged survives a power cut. `normal`: it survives a crash or kill of the
process; a power cut may lose the last seconds and leaves the rest consistent."""

WORTH_ANOTHER_TRY = (sqlite3.OperationalError, OSError)
"""A full disk, an I/O error, a lock: conditions that may pass. Anything else is a bug or damage."""


class Store:
    """Writes batches, each set of them in one transaction. Use it from one thread at a time."""

    def __init__(self, path: Path, durability: Durability, disk: Disk) -> None:
        if durability not in ("full", "normal"):
            raise InvalidOption(f"durability is {durability!r}; it can be 'full' or 'normal'")
        self.path = path
        self.disk = disk
        self.files = Files(path, disk)
        self._connection = opening.open_to_write(path, durability, disk)
        # The first write migrates: a journal that turns out to be unreadable stays as it is.
        self._outdated = opening.migrations(opening.format_of(self._connection))
        self._inode = os.stat(path).st_ino
        self._session = uuid.uuid4().hex[:12]
        self._writes = 0
        self._in_doubt = False

    def write(self, batches: Sequence[Batch]) -> None:
        """Write all of them or none. After an error WORTH_ANOTHER_TRY, call it with the same."""
        self._check_file_exists()
        name = f"{self._session}-{self._writes}"
        files = {file: data for batch in batches for file, data in batch.files.items()}
        if not (self._in_doubt and self._went_through(name)):
            self._in_doubt = True
            self._transact(name, batches, files)
        self._in_doubt, self._outdated = False, []
        self._writes += 1
        for batch in batches:
            batch.afterwards(self._connection, files)

    def _went_through(self, name: str) -> bool:
        """Whether a write was committed although the commit reported an error."""
        return bool(self._connection.execute(queries.LAST_WRITE).fetchone() == (name,))

    def _transact(self, name: str, batches: Sequence[Batch], files: dict[str, bytes]) -> None:
        disk, connection = self.disk, self._connection
        for file, data in files.items():
            self.files.write(file, data)
        try:
            disk.execute(connection, "BEGIN IMMEDIATE")
            self._check_sole_writer()
            for statement in self._outdated:
                disk.execute(connection, statement)
            apply(batches, disk, connection)
            disk.execute(connection, queries.NAME_WRITE, (name,))
            disk.commit(connection)
        except Exception as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            if opening.means_damage(error):
                raise opening.damaged(self.path, str(error)) from error
            raise

    def _check_file_exists(self) -> None:
        """Detect a deleted file: writing to it succeeds, and is lost."""
        try:
            same = os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            same = False
        if not same:
            raise UnreadableJournal(
                str(self.path),
                "the file was removed or replaced while it was in use",
                "What was written since is lost. Put the file back, or start a new run",
            )

    def _check_sole_writer(self) -> None:
        """Detect a second writer: if the lock file was removed, the last one continues."""
        last = self._connection.execute(queries.LAST_WRITE).fetchone()
        if self._writes and (last is None or not last[0].startswith(f"{self._session}-")):
            raise UnreadableJournal(
                str(self.path),
                "another coordinator has taken it over while it was in use here; its lock file "
                "must have been removed",
                "This coordinator has to end. Never remove the lock file: the lock of a dead "
                "coordinator is released by itself",
            )

    def close(self) -> None:
        """Close the file. Nothing is written after this."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

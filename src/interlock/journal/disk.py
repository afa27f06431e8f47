"""Every access of the journal to the disk. Tests inject faults here, and only here."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Disk:
    """The real disk."""

    def synchronous(self, durability: str) -> str:
        """The value of SQLite's `synchronous` for a durability."""
        return durability.upper()

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a file atomically: it exists as a whole or not at all, even after a crash."""
        partial = path.with_name(f".{path.name}.partial")
        try:
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                self.sync(file.fileno())
            os.replace(partial, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
        self.sync_path(path.parent)

    def make_folder(self, folder: Path) -> None:
        """Make a folder that survives a power cut."""
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            self.sync_path(folder.parent)

    def sync_path(self, path: Path) -> None:
        """Flush a file or folder to the disk."""
        opened = os.open(path, os.O_RDONLY)
        try:
            self.sync(opened)
        finally:
            os.close(opened)

    def sync(self, opened: int) -> None:
        """Flush an open file to the disk."""
        os.fsync(opened)

    def execute(
        self, connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()
    ) -> None:
        """Execute one statement of a transaction."""
        connection.execute(query, values)

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit the transaction. What it wrote is durable from here on."""
        connection.execute("COMMIT")

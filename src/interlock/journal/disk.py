"""Where the journal touches the disk. Faults in tests are planted here, and only here."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Disk:
    """The real one."""

    def synchronous(self, durability: str) -> str:
        """SQLite's word for a durability."""
        return durability.upper()

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a file so that it is there as a whole or not at all, whatever happens."""
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
        """Make a folder that is still there after a power cut."""
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            self.sync_path(folder.parent)

    def sync_path(self, path: Path) -> None:
        """Wait until a file or folder is on the disk."""
        opened = os.open(path, os.O_RDONLY)
        try:
            self.sync(opened)
        finally:
            os.close(opened)

    def sync(self, opened: int) -> None:
        """Wait for the disk."""
        os.fsync(opened)

    def execute(
        self, connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()
    ) -> None:
        """One statement of a transaction."""
        connection.execute(query, values)

    def commit(self, connection: sqlite3.Connection) -> None:
        """The moment from which on it is there for good."""
        connection.execute("COMMIT")

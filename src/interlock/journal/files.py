"""Large data is kept in files beside the journal, each named by the hash of its content.

So writing the same data twice makes one file, a reader can tell whether a file is damaged, and a
file that no row refers to (a crash came between file and row) can be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from pathlib import Path

from interlock.journal.disk import Disk

LARGE = 64 * 1024
"""Data longer than this, in bytes, goes to a file."""


class Damaged(Exception):
    """The data is not what was written."""


class Files:
    """The folder with the files of one journal."""

    def __init__(self, journal: Path, disk: Disk) -> None:
        self.folder = journal.with_name(journal.name + ".files")
        self._disk = disk

    def write(self, name: str, data: bytes) -> None:
        """Write data under the name that `name_of` gave it."""
        path = self.folder / name
        if not path.exists():
            self._disk.make_folder(self.folder)
            self._disk.write_file(path, data)

    def read(self, name: str) -> bytes:
        """The data of a file; raises Damaged."""
        try:
            data = (self.folder / name).read_bytes()
        except OSError as error:
            raise Damaged(f"its file {name} cannot be read ({error.strerror})") from error
        if name_of(data) != name:
            raise Damaged(f"its file {name} is not as it was written")
        return data

    def remove_all_but(self, names: Collection[str]) -> int:
        """Remove all files but these; returns how many were removed."""
        if not self.folder.is_dir():
            return 0
        removed = 0
        for path in self.folder.iterdir():
            if path.name not in names:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
                    removed += 1
        return removed


def name_of(data: bytes) -> str:
    """The name of the file for this data."""
    return hashlib.sha256(data).hexdigest() + ".json"

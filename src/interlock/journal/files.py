"""Large data lives in files beside the journal, named by what is in them.

So a file that is written twice is the same file, a reader sees at once whether it is damaged, and
one that no row names (a crash came between file and row) can be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from pathlib import Path

from interlock.journal.disk import Disk

LARGE = 64 * 1024
"""What is longer than this, in bytes, goes to a file."""


class Damaged(Exception):
    """Something is not as it was written."""


class Files:
    """The folder of one journal."""

    def __init__(self, journal: Path, disk: Disk) -> None:
        self.folder = journal.with_name(journal.name + ".files")
        self._disk = disk

    def write(self, name: str, data: bytes) -> None:
        """Keep data under the name that `name_of` gave it."""
        path = self.folder / name
        if not path.exists():
            self._disk.make_folder(self.folder)
            self._disk.write_file(path, data)

    def read(self, name: str) -> bytes:
        """What was written under a name."""
        try:
            data = (self.folder / name).read_bytes()
        except OSError as error:
            raise Damaged(f"its file {name} cannot be read ({error.strerror})") from error
        if name_of(data) != name:
            raise Damaged(f"its file {name} is not as it was written")
        return data

    def remove_all_but(self, names: Collection[str]) -> int:
        """Remove what no row names; how many there were."""
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

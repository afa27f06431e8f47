"""What is where in a project: its folder, and what Interlock keeps below it in `.interlock/`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from interlock.errors import UsageError
from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.plan.project_file import FILE, load_project
from interlock.plan.records import Project
from interlock.runtime.recovery.origin import KNOWN

FOLDER = ".interlock"
_FILES = (".gitignore", "journal.db", "journal.db.lock", "journal.db.agents.lock", "interlock.log")
_FOLDERS = ("logs", "tmp")


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a project."""

    root: Path

    @property
    def folder(self) -> Path:
        """Where all that Interlock writes for itself is."""
        return self.root / FOLDER

    @property
    def journal(self) -> Path:
        """The durable record of all runs."""
        return self.folder / "journal.db"

    @property
    def log(self) -> Path:
        """The structured log."""
        return self.folder / "interlock.log"

    def project(self) -> Project:
        """What the project file says; nothing but defaults where there is none."""
        path = self.root / FILE
        return load_project(path) if path.is_file() else Project(self.root)

    def make(self) -> None:
        """Make the folder, for its owner only and out of git's sight."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            ignore = self.folder / ".gitignore"
            for problem in self.misplaced():
                raise UsageError(problem)
            if not ignore.exists():
                ignore.write_text("# Made by Interlock: nothing in here is yours to commit.\n*\n")
        except OSError as error:
            raise UsageError(
                f"{self.folder} cannot be made ({error.strerror}); Interlock keeps its journal "
                "there: check the permissions of the project folder"
            ) from error

    def misplaced(self) -> list[str]:
        """What stands in the place of something that Interlock keeps."""
        found = []
        for name in (*_FILES, *_FOLDERS):
            path = self.folder / name
            is_right = path.is_dir() if name in _FOLDERS else path.is_file()
            if path.exists() and not is_right:
                what = "folder" if name in _FOLDERS else "file"
                found.append(f"{path} is no {what}; move it away, Interlock keeps its own there")
        return found

    def reader(self) -> Reader:
        """The journal, to look into."""
        if not self.journal.exists():
            raise UsageError(
                f"nothing has run in {self.root} yet; `interlock run` starts something"
            )
        return Reader(self.journal, Codec(KNOWN))


def here(folder: str | os.PathLike[str] = ".") -> Place:
    """The project that a folder belongs to: the nearest one above with a project file or a journal.

    Otherwise it is the folder itself.
    """
    start = Path(folder).resolve()
    for each in (start, *start.parents):
        if (each / FILE).is_file() or (each / FOLDER / "journal.db").is_file():
            return Place(each)
    return Place(start)

"""What is where in a project: its folder, and what Interlock keeps in `.interlock/` inside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from interlock.errors import NotRunning, UsageError
from interlock.journal.lock import is_held
from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.plan.project_file import FILE, load_project
from interlock.plan.records import Project
from interlock.runtime.control.client import ask
from interlock.runtime.control.protocol import NoReply
from interlock.runtime.recorded_types import RECORDED_TYPES

FOLDER = ".interlock"
_FILES = (".gitignore", "journal.db", "journal.db.lock", "journal.db.agents.lock", "interlock.log")
_FOLDERS = ("logs", "tmp")


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """The folder of a project."""

    root: Path

    @property
    def folder(self) -> Path:
        """Where Interlock keeps its own files."""
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
        """The project file as a record; only defaults if there is no file."""
        path = self.root / FILE
        return load_project(path) if path.is_file() else Project(self.root)

    def make(self) -> None:
        """Make `.interlock/`, accessible to its owner only and ignored by git."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            ignore = self.folder / ".gitignore"
            for problem in self.misplaced():
                raise UsageError(problem)
            if not ignore.exists():
                ignore.write_text("# Made by Interlock: nothing in here is yours to commit.\n*\n")
        except OSError as error:
            raise UsageError(
                f"{self.folder} cannot be created ({error.strerror}); Interlock keeps its journal "
                "there: check the permissions of the project folder"
            ) from error

    def misplaced(self) -> list[str]:
        """A complaint for each path where Interlock expects its own file or folder in vain."""
        found = []
        for name in (*_FILES, *_FOLDERS):
            path = self.folder / name
            is_right = path.is_dir() if name in _FOLDERS else path.is_file()
            if path.exists() and not is_right:
                what = "folder" if name in _FOLDERS else "file"
                found.append(f"{path} is not a {what}; Interlock needs this path: move it away")
        return found

    def reader(self) -> Reader:
        """The journal, opened for reading."""
        if not self.journal.exists():
            raise UsageError(f"nothing has run in {self.root} yet; start with `interlock run`")
        return Reader(self.journal, Codec(RECORDED_TYPES))

    def is_active(self) -> bool:
        """Whether a process is carrying out a run here at this moment."""
        try:
            ask(self.folder, "ping")
        except NotRunning:
            return is_held(self.journal)  # `multi-run` has no socket
        except NoReply:
            return True  # it exists, but it is busy or stopped
        return True


def find_project(folder: str | os.PathLike[str] = ".") -> ProjectFolder:
    """The project of a folder: the nearest folder above with a project file or a journal.

    If there is none, it is the folder itself.
    """
    start = Path(folder).resolve()
    for each in (start, *start.parents):
        if (each / FILE).is_file() or (each / FOLDER / "journal.db").is_file():
            return ProjectFolder(each)
    return ProjectFolder(start)

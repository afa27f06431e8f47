"""What an attempt of a program has on disk beside its workspace: its log, TMPDIR and prompt file.

.interlock/
    .gitignore                          keeps everything here out of commits
    logs/<run>/<task>/<attempt>.log
    tmp/<run>-<token>/                  TMPDIR, prompt; removed when the attempt is gone
    home/<run>/<task>/                  for `home="private"`; shared by all attempts of a task
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interlock.execution.backend import CommandJob
from interlock.execution.commands.environment import AttemptPaths
from interlock.execution.commands.log_file import LogFile
from interlock.execution.commands.removal import remove

OURS = ".interlock"
_UNSAFE = re.compile(r"[^\w.-]", re.ASCII)
_DIGEST = 8
_DIGESTED = re.compile(rf"-[0-9a-f]{{{_DIGEST}}}\Z")
_LONGEST_NAME = 80


class AttemptFolder:
    """The folders and files of one attempt, from its start until it is gone."""

    def __init__(self, command_job: CommandJob, token: int) -> None:
        self._command_job = command_job
        self._ours = ours = own_folder(command_job.root)
        self._task = safe_name(command_job.task_id)
        self._tmp = ours / "tmp" / f"{command_job.run_id}-{token}"
        self._log: LogFile | None = None
        try:
            self.paths = self._make_paths()
        except BaseException:
            remove(self._tmp)
            raise

    @property
    def log(self) -> LogFile:
        """The log; it is created on first use."""
        if self._log is None:
            self._log = self._open_log()
        return self._log

    @property
    def log_name(self) -> str:
        """The log, relative to the project folder."""
        return self.log.path.relative_to(self._command_job.root).as_posix()

    @contextmanager
    def start(self, text: str) -> Iterator[int]:
        """Open the log and the program's stdin; undo both if it cannot be started."""
        is_new = self._log is None
        try:
            self.log  # noqa: B018 - this creates it
            with open(self._stdin(text), "rb", buffering=0) as file:
                yield file.fileno()
        except BaseException:
            if is_new and self._log is not None:
                self._log.close()
                self._log.path.unlink(missing_ok=True)
                self._log = None
            raise

    def _stdin(self, text: str) -> Path:
        if not text:
            return Path(os.devnull)
        path = self._tmp / "stdin"
        path.unlink(missing_ok=True)
        _write(path, text)
        return path

    def close(self) -> None:
        """Remove the temporary files: the attempt is gone. Its log stays."""
        if self._log is not None:
            self._log.close()
        remove(self._tmp)

    def _open_log(self) -> LogFile:
        folder = self._ours / "logs" / self._command_job.run_id / self._task
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name, count = str(self._command_job.attempt), 1
        while True:
            try:
                return LogFile(folder / f"{name}.log")
            except FileExistsError:
                # An attempt that was cut off does not count: the next one has the same number.
                count += 1
                name = f"{self._command_job.attempt}-{count}"

    def _make_paths(self) -> AttemptPaths:
        remove(self._tmp)
        tmp = self._tmp / "tmp"
        tmp.mkdir(mode=0o700, parents=True)
        self._tmp.chmod(0o700)
        prompt_file = self._tmp / "prompt.md"
        _write(prompt_file, self._command_job.prompt)
        home = None
        if self._command_job.command.home == "private":
            home = self._ours / "home" / self._command_job.run_id / self._task
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return AttemptPaths(tmp, prompt_file, home)


def own_folder(root: Path) -> Path:
    """Return our folder in a project, and create it, so that commits leave it out."""
    ours = root / OURS
    ours.mkdir(exist_ok=True)
    with suppress(FileExistsError), open(ours / ".gitignore", "x", encoding="ascii") as file:
        file.write("*\n")
    return ours


def safe_name(task_id: str) -> str:
    """Return a folder name for a task: its id if that is possible, and unique in any case."""
    name = _UNSAFE.sub("_", task_id)[:_LONGEST_NAME].lstrip(".") or "_"
    # An id that looks as if it had a digest could be the name of another task.
    if name == task_id and not _DIGESTED.search(name):
        return name
    digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name}-{digest[:_DIGEST]}"


def remove_temporary(root: Path, run_id: str) -> None:
    """Remove what interrupted attempts of a run have left. None of them may be alive."""
    for folder in (root / OURS / "tmp").glob(f"{run_id}-*"):
        remove(folder)


def _write(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))

"""What a task has printed: the log file of an attempt, or the lines that a Python agent logged."""

from __future__ import annotations

import codecs
import contextlib
import os
from pathlib import Path
from threading import Event as Flag
from typing import TextIO

from interlock.errors import UsageError
from interlock.service.project_folder import ProjectFolder
from interlock.views.cli.last_run import FollowedRun, task_of
from interlock.views.cli.printing import complain
from interlock.views.terminal import safe_text

_BLOCK = 1 << 16
_KNOWN = 4096
"""How many of the bytes read last are kept, to find the same position in a replaced file."""
_PAUSE = 0.1
"""Seconds between two reads of a growing file."""


def read_log(
    folder: ProjectFolder, followed: FollowedRun, task_id: str, attempt: int | None, out: TextIO
) -> None:
    """Print what a task has printed so far."""
    kept = followed.fold.logs(task_id)
    if attempt is not None and attempt not in kept:
        known = ", ".join(map(str, kept)) or "none"
        raise UsageError(f"{task_id} has no log of attempt {attempt}; it has logs of: {known}")
    if not kept:
        if not _Lines(followed, task_id).copy(out):
            task = task_of(followed.facts(), task_id)
            complain(f"{task_id} has printed nothing; it {task.state.phrase}")
    else:
        with _Tail(folder.root / kept[attempt or max(kept)]) as tail:
            tail.copy(out, last=True)


def follow_log(folder: ProjectFolder, followed: FollowedRun, task_id: str, out: TextIO) -> None:
    """Print what a task prints, in all its attempts, until it has ended."""
    lines = _Lines(followed, task_id)
    shown: dict[int, _Tail] = {}
    pause = Flag()
    with contextlib.ExitStack() as files:
        while True:
            over = followed.is_over()
            over = task_of(followed.facts(), task_id).state.is_end or over
            for attempt, path in followed.fold.logs(task_id).items():
                if attempt not in shown:
                    shown[attempt] = files.enter_context(_Tail(folder.root / path))
                shown[attempt].copy(out, last=over)
            lines.copy(out)
            out.flush()
            if over:
                return
            pause.wait(_PAUSE)


class _Tail:
    """Reads a growing file from its beginning. A file that was removed is empty.

    A log that has become too long is replaced by a shorter one. The new file contains what was read
    last, and reading continues there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb") if path.is_file() else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._seen = b""

    def __enter__(self) -> _Tail:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def copy(self, out: TextIO, *, last: bool = False) -> None:
        """Print new lines; with `last`, also an unfinished line at the end."""
        while block := self._read():
            *lines, self._rest = (self._rest + self._decoder.decode(block)).split("\n")
            for line in lines:
                _print(line, out)
            while len(self._rest) > safe_text.LIMIT:  # a very long line is printed in pieces
                _print(self._rest[: safe_text.LIMIT], out)
                self._rest = self._rest[safe_text.LIMIT :]
        if last and self._rest:
            _print(self._rest, out)
            self._rest = ""

    def _read(self) -> bytes:
        if self._file is None:
            return b""
        block = self._file.read(_BLOCK) or self._read_replaced()
        self._seen = (self._seen + block)[-_KNOWN:]
        return block

    def _read_replaced(self) -> bytes:
        """Continue in the file that has the name now, if it is another one."""
        assert self._file is not None
        try:
            newer = self._path.open("rb")
        except OSError:
            return b""
        if os.path.sameopenfile(newer.fileno(), self._file.fileno()):
            newer.close()
            return b""
        self._file.close()
        self._file = newer
        found = newer.read().rfind(self._seen)
        if found < 0:  # it was replaced more than once since the last read
            newer.seek(0, os.SEEK_END)
            return b"\n[... some lines were missed: the output came too fast ...]\n"
        newer.seek(found + len(self._seen))
        return newer.read(_BLOCK)


class _Lines:
    """The lines that a Python agent logs."""

    def __init__(self, followed: FollowedRun, task_id: str) -> None:
        self._following = followed
        self._task_id = task_id
        self._last = 0

    def copy(self, out: TextIO) -> bool:
        """Print new lines; return whether there has been any line at all."""
        for number, line in self._following.lines(self._task_id, self._last):
            _print(line, out)
            self._last = number
        return self._last > 0


def _print(line: str, out: TextIO) -> None:
    for start in range(0, max(1, len(line)), safe_text.LIMIT):
        print(safe_text.line(line[start : start + safe_text.LIMIT]), file=out)

"""`RollingSummary`: what agents tell each other, in a file that does not grow for ever.

The file is plain text. Each entry ends with a line that holds only a record separator (which most
programs do not show), so that an entry that was cut off is recognised: it is what comes after the
last separator. What had to make room is counted in a note at the top, which ends with another
separator.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from interlock.errors import InvalidOption
from interlock.patterns.scheduler.file_locks import FileLock
from interlock.patterns.scheduler.shared_lock import SharedLock

_END = b"\n\x1e\n"
_NOTE_END = b"\n\x1f\n"
_SEPARATORS = re.compile("[\x1e\x1f]")
_NOTE = re.compile(rb"\[(\d+) older entries, (\d+) bytes, were dropped\]")
_LEAST = 256


class _Content(NamedTuple):
    """What is in the file; `whole` is where the last whole entry ends."""

    dropped: int
    dropped_bytes: int
    entries: list[bytes]
    whole: int


class RollingSummary:
    """An append-only file of texts, shared by threads and processes.

        summary = RollingSummary("summary.txt", max_bytes=64_000)
        summary.append("writer: chapter 1 is done")
        print(summary.read())

    An entry is there as a whole or not at all, also if its writer is killed. When the file would
    grow beyond `max_bytes`, the oldest entries go, and a note says how many. (`lock` is for systems
    without flock, and for tests.)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int = 65_536,
        *,
        lock: FileLock | None = None,
    ) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < _LEAST:
            raise InvalidOption(f"max_bytes is {max_bytes!r}; it must be {_LEAST} or more")
        self.path = Path(os.path.realpath(path))
        self.max_bytes = max_bytes
        self._lock = SharedLock(self.path, lock)

    def append(self, text: str) -> None:
        """Add an entry at the end."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidOption(f"an entry is text, not {text!r}")
        entry = _SEPARATORS.sub(" ", text).encode("utf-8", "replace") + _END
        if len(entry) > self.max_bytes - _LEAST // 2:
            raise InvalidOption(
                f"an entry of {len(entry)} bytes is too long for a summary of {self.max_bytes}"
            )
        with self._lock.writing():
            content = self._content()
            if not content.whole:
                self._replace(entry)
            elif content.whole + len(entry) <= self.max_bytes:
                self._add(entry, content.whole)
            else:
                self._replace(_made_room(content, self.max_bytes - len(entry)) + entry)

    def read(self) -> str:
        """The entries, oldest first, after the note of what was dropped, if something was."""
        content = self._content()
        entries = [each.decode("utf-8", "replace") for each in content.entries]
        if content.dropped:
            entries.insert(0, _note(content.dropped, content.dropped_bytes).decode())
        return "\n".join(entries)

    def entries(self) -> list[str]:
        """The entries that are left, oldest first."""
        return [each.decode("utf-8", "replace") for each in self._content().entries]

    # Readers need no lock: a file is only added to or replaced, and what is not whole is passed
    # over. So nobody who hangs or dies while writing keeps others from reading.

    def _content(self) -> _Content:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return _Content(0, 0, [], 0)
        dropped = dropped_bytes = begin = 0
        note, mark, _ = data.partition(_NOTE_END)
        found = _NOTE.fullmatch(note)
        if mark and found:
            dropped, dropped_bytes = int(found[1]), int(found[2])
            begin = len(note) + len(mark)
        entries = data[begin:].split(_END)
        cut_off = entries.pop()
        if data and not entries:
            # The first entry comes with the file, so it is never cut off.
            raise InvalidOption(f"{self.path} is no summary: something else is in it")
        return _Content(dropped, dropped_bytes, entries, len(data) - len(cut_off))

    def _add(self, entry: bytes, at: int) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(file, at)  # an entry that somebody did not get to finish
            os.lseek(file, at, os.SEEK_SET)
            _write(file, entry)
        except OSError:
            os.ftruncate(file, at)  # a full disk: half an entry is none
            raise
        finally:
            os.close(file)

    def _replace(self, data: bytes) -> None:
        """Write the file anew: it is the old one or the new one at any moment.

        The new one has a name that nobody uses (who is killed here leaves it behind), and at no
        moment more readers than the old one.
        """
        old = self.path.stat() if self.path.exists() else None
        fresh = self.path.with_name(f".interlock-{secrets.token_hex(8)}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.open(fresh, flags, 0o666 if old is None else stat.S_IMODE(old.st_mode))
        try:
            try:
                if old is not None:
                    _give_to(file, old)
                _write(file, data)
                os.fsync(file)  # or after a power cut there might be neither
            finally:
                os.close(file)
            os.replace(fresh, self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def _made_room(content: _Content, most: int) -> bytes:
    """What is left of the entries, with a note of what is not: no more bytes than `most`."""
    dropped, dropped_bytes, entries, _ = content
    size = sum(len(each) + len(_END) for each in entries)
    for gone, entry in enumerate(entries, 1):
        size -= len(entry) + len(_END)
        dropped_bytes += len(entry)
        note = _note(dropped + gone, dropped_bytes) + _NOTE_END
        if len(note) + size <= most:
            return note + b"".join(each + _END for each in entries[gone:])
    raise AssertionError("there is always room for one entry and a note")


def _give_to(file: int, old: os.stat_result) -> None:
    """Have a file be whose and for whom an older one is, as far as this user may."""
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(file, owner, group)
    os.fchmod(file, stat.S_IMODE(old.st_mode))


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _note(entries: int, size: int) -> bytes:
    return f"[{entries} older entries, {size} bytes, were dropped]".encode("ascii")

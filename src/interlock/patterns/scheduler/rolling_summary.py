"""`RollingSummary`: an append-only file of bounded size that agents share.

The file is plain text. Each entry ends with a line that holds only a record separator (which most
programs do not show). So an incomplete entry is recognised: it follows the last separator. A note
at the top counts the entries that were dropped; it ends with a unit separator.
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
from interlock.system.reader_writer_lock import LockMethod, ReaderWriterLock

_END = b"\n\x1e\n"
_NOTE_END = b"\n\x1f\n"
_SEPARATORS = re.compile("[\x1e\x1f]")
_NOTE = re.compile(rb"\[(\d+) older entries, (\d+) bytes, were dropped\]")
_LEAST = 256


class _Content(NamedTuple):
    """What the file contains; `whole` is the offset at which the last complete entry ends."""

    dropped: int
    dropped_bytes: int
    entries: list[bytes]
    whole: int


class RollingSummary:
    """An append-only file of texts, shared by threads and processes.

        summary = RollingSummary("summary.txt", max_bytes=64_000)
        summary.append("writer: chapter 1 is done")
        print(summary.read())

    Appending is atomic, even if the writer is killed. When the file would grow beyond `max_bytes`,
    the oldest entries are dropped and a note says how many. (`lock` is for systems without flock,
    and for tests.)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int = 65_536,
        *,
        lock: LockMethod | None = None,
    ) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < _LEAST:
            raise InvalidOption(f"max_bytes is {max_bytes!r}; it must be {_LEAST} or more")
        self.path = Path(os.path.realpath(path))
        self.max_bytes = max_bytes
        self._lock = ReaderWriterLock(self.path, lock)

    def append(self, text: str) -> None:
        """Append an entry."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidOption(f"an entry must be text that is not blank, not {text!r}")
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
                self._replace(_drop_oldest(content, self.max_bytes - len(entry)) + entry)

    def read(self) -> str:
        """Return the entries, oldest first, after a note if older ones were dropped."""
        content = self._content()
        entries = [each.decode("utf-8", "replace") for each in content.entries]
        if content.dropped:
            entries.insert(0, _note(content.dropped, content.dropped_bytes).decode())
        return "\n".join(entries)

    def entries(self) -> list[str]:
        """Return the entries as a list, oldest first."""
        return [each.decode("utf-8", "replace") for each in self._content().entries]

    # Readers need no lock: the file is only appended to or replaced, and an incomplete entry is
    # ignored. So a writer that hangs or dies does not block readers.

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
        incomplete = entries.pop()
        if data and not entries:
            # The first entry is written together with the file, so it is never incomplete.
            raise InvalidOption(f"{self.path} is not a summary: it has other content")
        return _Content(dropped, dropped_bytes, entries, len(data) - len(incomplete))

    def _add(self, entry: bytes, at: int) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(file, at)  # discard an incomplete entry
            os.lseek(file, at, os.SEEK_SET)
            _write(file, entry)
        except OSError:
            os.ftruncate(file, at)  # the disk is full: remove the partial entry
            raise
        finally:
            os.close(file)

    def _replace(self, data: bytes) -> None:
        """Replace the file atomically.

        The new file has a unique temporary name (a killed writer leaves it behind), and never wider
        permissions than the old one.
        """
        old = self.path.stat() if self.path.exists() else None
        fresh = self.path.with_name(f".interlock-{secrets.token_hex(8)}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.open(fresh, flags, 0o666 if old is None else stat.S_IMODE(old.st_mode))
        try:
            try:
                if old is not None:
                    _copy_owner(file, old)
                _write(file, data)
                os.fsync(file)  # otherwise a power cut could lose both files
            finally:
                os.close(file)
            os.replace(fresh, self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def _drop_oldest(content: _Content, most: int) -> bytes:
    """Return the newest entries, after a note about the others, in at most `most` bytes."""
    dropped, dropped_bytes, entries, _ = content
    size = sum(len(each) + len(_END) for each in entries)
    for gone, entry in enumerate(entries, 1):
        size -= len(entry) + len(_END)
        dropped_bytes += len(entry)
        note = _note(dropped + gone, dropped_bytes) + _NOTE_END
        if len(note) + size <= most:
            return note + b"".join(each + _END for each in entries[gone:])
    raise AssertionError("an entry and a note always fit")


def _copy_owner(file: int, old: os.stat_result) -> None:
    """Copy owner, group and permissions of the old file, as far as this user may."""
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(file, owner, group)
    os.fchmod(file, stat.S_IMODE(old.st_mode))


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _note(entries: int, size: int) -> bytes:
    return f"[{entries} older entries, {size} bytes, were dropped]".encode("ascii")

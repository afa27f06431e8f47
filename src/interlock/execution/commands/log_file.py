"""The log of an attempt: the beginning and the end of its output, however long it was."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

HEAD = 1 << 20
TAIL = 9 << 20
_BLOCK = 1 << 20
_NEAR = 1 << 16
"""How far away the start or end of a line may be for a cut to be made there."""
_INSIDE = bytes(range(0x80, 0xC0))
"""The continuation bytes of UTF-8."""
_ASCII = tuple(bytes([each]) for each in range(0x80))


class LogFile:
    """A file that lines are appended to. The middle is left out, and a line says how much that is.

    While it grows it may be as long as the beginning and twice the end. Then it is replaced by a
    shorter file of the same name, so a reader that follows it has to check for that.
    """

    def __init__(self, path: Path, head: int = HEAD, tail: int = TAIL) -> None:
        self.path = path
        self._head, self._tail = head, tail
        self._file = _made(path)
        self._size = 0
        """The length of the file now."""
        self._begins = 0
        """Where the end of the output begins, after the gap."""
        self._left_out = 0

    def write(self, data: bytes) -> None:
        """Append to it. A full disk ends the log, not the agent."""
        if self._file < 0:
            return
        try:
            _write(self._file, data)
            self._size += len(data)
            if self._size > self._head + 2 * self._tail:
                self._shorten()
        except OSError:
            self._close()

    def close(self) -> None:
        """Shorten it for the last time, and close it."""
        if self._file >= 0 and self._size > max(self._begins, self._head) + self._tail:
            with suppress(OSError):
                self._shorten()
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _shorten(self) -> None:
        if not self._left_out:
            self._head = self._begins = _end_of_line(self._file, self._head)
        end = _start_of_line(self._file, self._size - self._tail)
        self._left_out += end - self._begins
        gap = b"\n[... %d bytes left out ...]\n" % self._left_out
        shorter = self.path.with_name(f".{self.path.name}.partial")
        with suppress(FileNotFoundError):
            shorter.unlink()
        file = _made(shorter)
        try:
            _copy(self._file, 0, self._head, file)
            _write(file, gap)
            _copy(self._file, end, self._size, file)
            os.replace(shorter, self.path)
        except OSError:
            os.close(file)
            raise
        self._begins = self._head + len(gap)
        self._size = self._begins + self._size - end
        os.close(self._file)
        self._file = file


def _made(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _copy(source: int, begin: int, end: int, target: int) -> None:
    while begin < end:
        block = os.pread(source, min(_BLOCK, end - begin), begin)
        if not block:
            return  # the file was truncated
        _write(target, block)
        begin += len(block)


def _start_of_line(file: int, begin: int) -> int:
    """Return where the next line begins; within a very long line, the next character."""
    part = os.pread(file, _NEAR, begin)
    found = part.find(b"\n") + 1
    return begin + (found or len(part) - len(part.lstrip(_INSIDE)))


def _end_of_line(file: int, end: int) -> int:
    """Return where the last line ends; within a very long line, the last character."""
    begin = max(0, end - _NEAR)
    part = os.pread(file, end - begin, begin)
    found = part.rfind(b"\n") + 1
    if found:
        return begin + found
    whole = part.rstrip(_INSIDE)
    return begin + len(whole) - (not whole.endswith(_ASCII))

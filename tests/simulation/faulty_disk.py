"""A disk that fails at its N-th operation, a given number of times, in a given way.

    disk = FaultyDisk(at=7, fault=DiskFault.FULL, times=3)
    journal = SqliteJournal(path, disk=disk, writer=LoopWriter)

Each statement, each commit and each file is an operation. Run a program once with `FaultyDisk()`,
read `operations`, then run it again with a fault at each of them.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from interlock.journal.disk import Disk


class DiskFault(StrEnum):
    """What a disk can do wrong."""

    ERROR = "error"
    """An I/O error; nothing was written."""
    FULL = "full"
    """No room; nothing was written."""
    SHORT = "short"
    """An I/O error in the middle: half of a file, or a statement whose effect is not reported."""
    UNSURE = "unsure"
    """It was written, and yet an error is reported."""
    CRASH_BEFORE = "crash_before"
    """The process ends before the write."""
    CRASH_AFTER = "crash_after"
    """The process ends right after the write."""


class PowerCut(BaseException):
    """The process has ended. Nothing that it does from here on has an effect."""


class FaultyDisk(Disk):
    """Counts its operations, and fails at number `at` (from 1) and the `times` - 1 after it."""

    def __init__(self, at: int = 0, fault: DiskFault = DiskFault.ERROR, times: int = 1) -> None:
        self.operations = 0
        self.struck = 0
        self._fault = fault
        self._strikes = range(at, at + times) if at else range(0)
        self._gone = False

    def synchronous(self, durability: str) -> str:
        """Only the process crashes here, not the machine: there is no need to wait for the disk."""
        return "OFF"

    def sync(self, opened: int) -> None:
        """See `synchronous`."""

    def write_file(self, path: Path, data: bytes) -> None:
        def half() -> None:
            path.with_name(f".{path.name}.partial").write_bytes(data[: len(data) // 2])

        self._do(lambda: super(FaultyDisk, self).write_file(path, data), half, _os_error)

    def execute(
        self, connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()
    ) -> None:
        def whole() -> None:
            connection.execute(query, values)

        self._do(whole, whole, _sqlite_error)

    def commit(self, connection: sqlite3.Connection) -> None:
        def whole() -> None:
            connection.execute("COMMIT")

        def none() -> None:
            return

        self._do(whole, none, _sqlite_error)

    def _do(
        self,
        whole: Callable[[], None],
        half: Callable[[], None],
        error: Callable[[DiskFault], Exception],
    ) -> None:
        if self._gone:
            raise PowerCut
        self.operations += 1
        if self.operations not in self._strikes:
            whole()
            return
        self.struck += 1
        if self._fault in (DiskFault.UNSURE, DiskFault.CRASH_AFTER):
            whole()
        elif self._fault is DiskFault.SHORT:
            half()
        if self._fault in (DiskFault.CRASH_BEFORE, DiskFault.CRASH_AFTER):
            self._gone = True
            raise PowerCut
        raise error(self._fault)


def _sqlite_error(fault: DiskFault) -> Exception:
    return sqlite3.OperationalError(
        "database or disk is full" if fault is DiskFault.FULL else "disk I/O error"
    )


def _os_error(fault: DiskFault) -> Exception:
    number = errno.ENOSPC if fault is DiskFault.FULL else errno.EIO
    return OSError(number, os.strerror(number))

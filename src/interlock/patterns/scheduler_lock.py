"""Locks for what threads and processes share: many may look, one may change, nobody starves.

Two files are locked. Whoever comes stands in the `turn` first; a writer keeps it until everybody
has left the `room`, so that those who come after it wait behind it. Locks are the operating
system's and end with their process, however that ends. On a network they are worth what its file
system makes of them. The files stay: somebody might be about to lock them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from interlock.errors import WouldDeadlock

try:
    import fcntl
except ImportError:  # pragma: no cover - systems without flock
    fcntl = None  # type: ignore[assignment]

FileLock = Callable[[Path, bool], AbstractContextManager[None]]
"""Holds a file, alone or (False) beside others, for the length of a block."""


@contextmanager
def flocked(path: Path, alone: bool) -> Iterator[None]:
    """A file, locked by the operating system."""
    # Opened anew by everybody: the lock belongs to what was opened, also between threads.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has it open too
    finally:
        os.close(file)


@contextmanager
def by_sqlite(path: Path, alone: bool) -> Iterator[None]:
    """The same for systems without flock: SQLite can lock a file everywhere, and writes nothing.

    Its locks, too, end with their process. Waiting for one is a series of looks, so it is slower.
    """
    connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
    try:
        while not _began(connection, alone):
            pass  # a minute was not enough
        yield
    finally:
        connection.close()


def _began(connection: sqlite3.Connection, alone: bool) -> bool:
    try:
        connection.execute("BEGIN EXCLUSIVE" if alone else "BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master")  # from here on, it is locked
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return True


class SharedLock:
    """Many readers or one writer, in the order of their coming. Usable from every thread."""

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        self._turn = path.with_name(f"{path.name}.turn")
        self._room = path.with_name(f"{path.name}.lock")
        self._lock = lock or (by_sqlite if fcntl is None else flocked)
        self._inside = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Nobody changes anything meanwhile."""
        if self._is_inside():
            yield
            return
        with ExitStack() as room:
            with self._lock(self._turn, True):
                room.enter_context(self._lock(self._room, False))
            with self._entered("reading"):
                yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else looks or changes anything meanwhile."""
        if self._is_inside() == "reading":
            raise WouldDeadlock(
                "a change inside of a look would wait for the look to end; change it afterwards"
            )
        if self._is_inside():
            yield
            return
        with self._lock(self._turn, True), self._lock(self._room, True), self._entered("writing"):
            yield

    def _is_inside(self) -> str:
        """What this thread is doing here already."""
        return getattr(self._inside, "doing", "")

    @contextmanager
    def _entered(self, doing: str) -> Iterator[None]:
        self._inside.doing = doing
        try:
            yield
        finally:
            self._inside.doing = ""

"""Locks on files, of the operating system: they end with their process, however that ends.

Who is inside of one lock and waits for another may be waiting for somebody who waits for it, in
any process; nobody can see that from here. So such a wait, and no other, has an end.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from interlock.errors import WouldDeadlock
from interlock.model.duration import span
from interlock.system import file_locks

FileLock = Callable[[Path, bool], AbstractContextManager[None]]
"""Holds a file, alone or (False) beside others, for the length of a block."""

INSIDE_WAITS = 60.0
"""Seconds that somebody who is inside of a lock waits for another one."""


class _Here(threading.local):
    """What this thread is inside of: lock and path, and what it does there."""

    def __init__(self) -> None:
        self.inside: dict[tuple[FileLock, Path], str] = {}


HERE = _Here()


@contextmanager
def flocked(path: Path, alone: bool) -> Iterator[None]:
    """A file, locked by the operating system."""
    # Opened anew for every block: the lock belongs to the open file, also between threads.
    lock = file_locks.FileLock(path, permissions=0o666)
    try:
        if not lock.acquire(shared=not alone, timeout=INSIDE_WAITS if HERE.inside else None):
            raise _waited_too_long(path)
        yield
    finally:
        lock.release()


@contextmanager
def by_sqlite(path: Path, alone: bool) -> Iterator[None]:
    """The same for systems without flock: SQLite can lock a file everywhere, and writes nothing.

    Its locks, too, end with their process. Waiting for one is a series of looks, so it is slower.
    """
    patience = INSIDE_WAITS if HERE.inside else 60.0
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        while not _began(connection, alone):
            if HERE.inside:
                raise _waited_too_long(path)
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


def best_lock() -> FileLock:
    """The one that this system is best at."""
    return flocked if file_locks.IS_SUPPORTED else by_sqlite


def _waited_too_long(path: Path) -> WouldDeadlock:
    others = ", ".join(sorted(str(each) for _, each in HERE.inside))
    return WouldDeadlock(
        f"waited {span(INSIDE_WAITS)} for the lock {path} inside of {others}: whoever has it may "
        "be waiting for that; take them one after the other, or in the same order everywhere"
    )

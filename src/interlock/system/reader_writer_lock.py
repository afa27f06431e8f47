"""A lock that threads and processes share: many readers or one writer, in order of arrival.

Two files beside the locked path are used. Every caller locks `.NAME.turn` first. A reader releases
it as soon as it holds `.NAME.lock` beside other readers; a writer keeps it until all readers have
left `.NAME.lock`, so later callers queue behind the writer and no caller starves. The files are
never removed: another process might be about to lock them.

A thread that holds one lock and waits for another may be part of a deadlock, with any thread of any
process, which cannot be seen from here. So such a wait, and no other, is bounded.

Known limit: on network file systems the lock is worth what the file system makes of it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from interlock.errors import InvalidOption, WouldDeadlock
from interlock.system import file_locks

LockMethod = Callable[[Path, bool], AbstractContextManager[None]]
"""Locks a file for a block, exclusively (True) or shared (False)."""

NESTED_TIMEOUT = 60.0
"""Seconds that a thread which holds a lock waits for another one."""

_SUFFIXES = (".turn", ".lock")


class _HeldHere(threading.local):
    """The locks that this thread holds, each for "reading" or "writing"."""

    def __init__(self) -> None:
        self.locks: dict[tuple[LockMethod, Path], str] = {}


_HELD = _HeldHere()


class ReaderWriterLock:
    """Many readers or one writer. Usable from every thread; nested use by one thread is allowed.

    All locks of one (real) path are the same lock, in whichever process they are made.
    """

    def __init__(self, path: Path, method: LockMethod | None = None) -> None:
        if path.name.startswith(".") and path.name.endswith(_SUFFIXES):
            raise InvalidOption(f"{path.name!r} is the name of a lock file; use another name")
        self._turn, self._content = (path.with_name(f".{path.name}{each}") for each in _SUFFIXES)
        self._method = method or (flocked if file_locks.IS_SUPPORTED else by_sqlite)
        self._key = self._method, path

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock beside other readers; no writer holds it meanwhile."""
        if self._held_for():
            yield
            return
        with ExitStack() as content:
            with self._method(self._turn, True):
                content.enter_context(self._method(self._content, False))
            with self._noted("reading"):
                yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock exclusively."""
        if self._held_for() == "reading":
            raise WouldDeadlock(
                "a write inside a read would wait for the read to end; write afterwards"
            )
        if self._held_for():
            yield
            return
        turn, content = self._method(self._turn, True), self._method(self._content, True)
        with turn, content, self._noted("writing"):
            yield

    def _held_for(self) -> str:
        """What this thread holds the lock for already; empty if it does not."""
        return _HELD.locks.get(self._key, "")

    @contextmanager
    def _noted(self, purpose: str) -> Iterator[None]:
        _HELD.locks[self._key] = purpose
        try:
            yield
        finally:
            del _HELD.locks[self._key]


@contextmanager
def flocked(path: Path, exclusive: bool) -> Iterator[None]:
    """Lock a file by flock."""
    # Opened anew for every block: the lock belongs to the open file, also between threads.
    lock = file_locks.FileLock(path, permissions=0o666)
    try:
        if not lock.acquire(shared=not exclusive, timeout=NESTED_TIMEOUT if _HELD.locks else None):
            raise _timed_out(path)
        yield
    finally:
        lock.release()


@contextmanager
def by_sqlite(path: Path, exclusive: bool) -> Iterator[None]:
    """Lock a file by an SQLite transaction that writes nothing, for systems without flock.

    These locks end with their process, too. SQLite polls for a lock, so waiting is slower.
    """
    patience = NESTED_TIMEOUT if _HELD.locks else 60.0
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        while not _try_begin(connection, exclusive):
            if _HELD.locks:
                raise _timed_out(path)
        yield
    finally:
        connection.close()


def _try_begin(connection: sqlite3.Connection, exclusive: bool) -> bool:
    try:
        connection.execute("BEGIN EXCLUSIVE" if exclusive else "BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master")  # takes the shared lock
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return True


def _timed_out(path: Path) -> WouldDeadlock:
    others = ", ".join(sorted(str(each) for _, each in _HELD.locks))
    return WouldDeadlock(
        f"waited {NESTED_TIMEOUT:g} s for the lock {path} inside of {others}: its holder may be "
        "waiting for that; acquire them one after the other, or in the same order everywhere"
    )

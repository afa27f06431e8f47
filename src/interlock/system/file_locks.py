"""Locks on files and folders (flock), and a description of the process that holds one.

The operating system releases such a lock when its process ends, however it ends, so a lock file
is never stale and is never removed: another process might be about to lock it. What a lock file
*says* (see `LockHolder`) is for messages only; the lock decides.

A lock belongs to the open file, not to the process: two `FileLock`s of one path exclude each other
within one process as well, and a child process that inherits the descriptor holds the lock too. A
forked child closes its copies at once; a program that is started gets a descriptor only if it is
passed on purpose (`fileno`).

Known limits: no flock on Windows (`IS_SUPPORTED`), and none that can be relied on over network
file systems.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

from interlock.system.process_identity import process_started

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

IS_SUPPORTED = fcntl is not None
"""Whether this system has flock."""

_LONGEST_DESCRIPTION = 4096

_open_locks: WeakSet[FileLock] = WeakSet()


class FileLock:
    """A file or folder that has been opened in order to lock it.

    A file is created if it is missing; a folder (`is_folder`) has to exist. OSError if it cannot
    be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        is_folder: bool = False,
        permissions: int = 0o644,
    ) -> None:
        how = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR | os.O_CREAT
        self._file = os.open(path, how | os.O_CLOEXEC, permissions)
        _open_locks.add(self)

    def acquire(self, *, shared: bool = False, timeout: float | None = None) -> bool:
        """Lock it, beside other shared locks or exclusively; False if that took too long.

        Waits until the lock is available, at most `timeout` seconds; 0 does not wait at all. After
        a wait that was too long it must be released like any other. OSError where the file system
        has no such locks.
        """
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        if timeout is None:
            fcntl.flock(self._file, how)
            return True
        try:
            fcntl.flock(self._file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return timeout > 0 and self._wait(how, timeout)
        return True

    def release(self) -> None:
        """Unlock and close it. Repeating this does nothing."""
        if self._file >= 0:
            # Closing alone would not do: a child that was just forked may still have its copy.
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self.close()

    def close(self) -> None:
        """Close our descriptor only. A process that has inherited the lock keeps it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def fileno(self) -> int:
        """The descriptor, for a process that is to inherit the lock."""
        return self._file

    def read(self) -> bytes:
        """What the file says."""
        return os.pread(self._file, _LONGEST_DESCRIPTION, 0)

    def write(self, text: str) -> None:
        """Replace what the file says."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)

    def _wait(self, how: int, timeout: float) -> bool:
        """Wait in line for at most `timeout` seconds."""
        # flock knows no timeout, and a process that only tries now and then starves behind those
        # that wait. So a thread waits in our place, on a copy of the descriptor: the lock is
        # released when both have been closed.
        copy = os.dup(self._file)
        acquired, given_up = threading.Event(), threading.Event()

        def wait_in_line() -> None:
            try:
                fcntl.flock(copy, how)
                acquired.set()
                if given_up.is_set():
                    fcntl.flock(copy, fcntl.LOCK_UN)
            finally:
                os.close(copy)

        threading.Thread(target=wait_in_line, name="interlock-lock", daemon=True).start()
        try:
            return acquired.wait(timeout)
        finally:
            if not acquired.is_set():
                given_up.set()


def _close_all() -> None:
    for each in list(_open_locks):
        each.close()


if hasattr(os, "register_at_fork"):
    # Otherwise a forked child that outlives us would keep our locks.
    os.register_at_fork(after_in_child=_close_all)


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds a lock, as its lock file describes it."""

    pid: int = 0
    """0 if the file does not say."""
    host: str = ""
    since: str = ""
    """When it acquired the lock (ISO 8601)."""
    process_started: str = ""
    """When the process began: see `process_started`."""

    def is_alive(self) -> bool:
        """Whether the process still runs. One on another host cannot be seen, and counts as alive.

        Not whether it still holds the lock.
        """
        return self.host != socket.gethostname() or (
            process_started(self.pid) == self.process_started
        )


def describe_this_process() -> LockHolder:
    """The holder of a lock that is acquired by this process now."""
    return LockHolder(
        os.getpid(),
        socket.gethostname(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        process_started(os.getpid()) or "",
    )


def parse_holder(text: bytes) -> LockHolder:
    """What a lock file says, as far as it can be read."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None  # empty; or its writer was killed before it was done
    if not isinstance(found, dict):
        return LockHolder()
    pid = found.get("pid")
    texts = (found.get(name) for name in ("host", "since", "process_started"))
    return LockHolder(
        pid if type(pid) is int else 0,
        *(each if isinstance(each, str) else "" for each in texts),
    )


def read_holder(path: Path) -> LockHolder:
    """What a lock file says, read without locking it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return LockHolder()
    try:
        return parse_holder(os.pread(file, _LONGEST_DESCRIPTION, 0))
    except OSError:
        return LockHolder()
    finally:
        os.close(file)


def is_open_in(pid: int, path: Path) -> bool:
    """Whether a running process has a file open; True where that cannot be seen.

    It tells the holder of a lock from a process that was given the pid of a dead holder.
    """
    try:
        os.kill(pid, 0)
        wanted = os.stat(path)
    except PermissionError:
        return True  # a process of another user, which is alive
    except (OSError, OverflowError):
        return False
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return True
    for each in numbers:
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.path.samestat(os.stat(f"{folder}/{each}"), wanted):
                return True
    return False

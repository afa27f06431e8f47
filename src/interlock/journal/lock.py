"""One coordinator per journal, kept by a lock that is released when its process ends.

The lock is an flock on a file beside the journal, so the lock of a dead coordinator is available
at once, whatever its file says. What the file says (process, host, since when) is only for people:
a pid may be stale, or copied along with the folder.

The journal's own file is not locked: SQLite would lose its locks with ours. Two names of one
journal have one lock if one is a symbolic link; hard links of a database are not supported.
On network file systems neither this lock nor SQLite's log in shared memory can be relied on.
"""

from __future__ import annotations

import contextlib
import json
import socket
from dataclasses import asdict
from pathlib import Path

from interlock.errors import AlreadyRunning, UnreadableJournal
from interlock.system.file_locks import (
    IS_SUPPORTED,
    FileLock,
    describe_this_process,
    is_open_in,
    read_holder,
)


class JournalLock:
    """Held from its making until `release()`, or until the process ends."""

    def __init__(self, journal: Path) -> None:
        if not IS_SUPPORTED:  # pragma: no cover - Windows
            raise UnreadableJournal(
                str(journal),
                "this system has no flock, so two coordinators could not be kept apart",
                "Run it on Linux or macOS, or without a journal",
            )
        self.path = lock_file(journal)
        try:
            self._lock = FileLock(self.path)
        except OSError as error:
            raise UnreadableJournal(
                str(journal),
                f"its lock file cannot be opened ({error.strerror})",
                "Check the permissions of the folder, or choose another place for the journal",
            ) from error
        try:
            acquired = self._lock.acquire(timeout=0)
        except OSError as error:
            self._lock.close()
            raise held_by(journal) from error
        if not acquired:
            self._lock.close()
            raise held_by(journal)
        self._lock.write(json.dumps(asdict(describe_this_process())))

    def release(self) -> None:
        """Let another coordinator have the journal. Repeating this does nothing."""
        if self._lock.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._lock.write("")
            self._lock.release()


def lock_file(journal: Path) -> Path:
    """Where the lock of a journal is."""
    return journal.with_name(journal.name + ".lock")


def held_by(journal: Path) -> AlreadyRunning:
    """The error that names the process which holds a journal, as far as its lock file says."""
    holder = read_holder(lock_file(journal))
    return AlreadyRunning(
        str(journal),
        holder.pid,
        holder.host or "an unknown host",
        holder.since or "an unknown time",
    )


def is_held(journal: Path) -> bool:
    """Whether a process of this machine holds the lock, found out without touching it.

    Trying to lock it would keep out a coordinator that starts at the same moment.
    """
    path = lock_file(journal.resolve())
    holder = read_holder(path)
    if holder.pid <= 0 or holder.host != socket.gethostname():
        return False
    return is_open_in(holder.pid, path)

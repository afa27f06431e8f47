"""One coordinator per journal, kept by a lock that dies with its process.

The lock is the operating system's (`flock` on a file beside the journal), so a dead coordinator's
is free at once, whatever its file says. What the file says (process, host, since when) is only
for people: a pid may be stale, or copied along with the folder. The file is never removed, as
somebody might be about to lock it.

The journal's own file is not locked: SQLite would lose its locks with ours. Two names of one
journal have one lock if one is a symbolic link; hard links of a database are asking for trouble.
On network file systems neither this lock nor SQLite's log in shared memory can be relied on.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

from interlock.errors import AlreadyRunning, UnreadableJournal

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_open: WeakSet[Held] = WeakSet()


class Held:
    """An open file with a lock of ours on it. A child that is forked lets go of it."""

    def __init__(self, file: int) -> None:
        self._file = file
        _open.add(self)

    def forget(self) -> None:
        """Close our end only. A lock that was inherited stays with the parent, whose it is."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Lock(Held):
    """Held from its making until `release()`, or until the process is gone."""

    def __init__(self, journal: Path) -> None:
        if fcntl is None:  # pragma: no cover - Windows
            raise UnreadableJournal(
                str(journal),
                "this system has no flock, so two coordinators could not be kept apart",
                "Run it on Linux or macOS, or without a journal",
            )
        self.path = lock_file(journal)
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnreadableJournal(
                str(journal),
                f"its lock file cannot be opened ({error.strerror})",
                "Check the permissions of the folder, or choose another place for the journal",
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise held_by(journal) from error
        super().__init__(file)
        self._write(json.dumps(_this_process()))

    def release(self) -> None:
        """Let others in. Doing it twice is fine."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                self._write("")
                # A child that was forked a moment ago may not have closed its end yet.
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self.forget()

    def _write(self, text: str) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)


def lock_file(journal: Path) -> Path:
    """Where the lock of a journal is."""
    return journal.with_name(journal.name + ".lock")


def held_by(journal: Path) -> AlreadyRunning:
    """Who has a journal, as far as its lock file says."""
    holder = _read(lock_file(journal))
    return AlreadyRunning(
        str(journal),
        _field(holder, "pid", int, 0),
        _field(holder, "host", str, "an unknown host"),
        _field(holder, "since", str, "an unknown time"),
    )


def is_held(journal: Path) -> bool:
    """Whether a process of this machine has the lock, found out without touching it.

    Trying to lock it would keep out whoever begins at the same moment.
    """
    journal = journal.resolve()
    path, holder = lock_file(journal), held_by(journal)
    if holder.pid <= 0 or holder.host != socket.gethostname():
        return False
    try:
        os.kill(holder.pid, 0)
        ours = os.stat(path)
    except PermissionError:
        return True  # somebody else's process, which is alive
    except (OSError, OverflowError):
        return False
    return _has_open(holder.pid, ours)


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    """Whether a process has the file open; another one may have got the number of a dead one."""
    opened = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(opened)
    except OSError:
        return True  # not for us to see
    for each in numbers:
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.path.samestat(os.stat(f"{opened}/{each}"), wanted):
                return True
    return False


def _forget_all() -> None:
    for each in list(_open):
        each.forget()


if hasattr(os, "register_at_fork"):
    # Otherwise a forked child that outlives us would hold the lock for us.
    os.register_at_fork(after_in_child=_forget_all)


def _this_process() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "process_started": _process_started(),
    }


def _process_started() -> str | None:
    """When this process began, where the system tells: with the pid it names a process for good."""
    try:
        began = os.stat(f"/proc/{os.getpid()}").st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds")


def _read(path: Path) -> Any:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return json.loads(os.pread(file, 4096, 0))
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)


def _field(holder: Any, name: str, kind: type, otherwise: Any) -> Any:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if type(value) is kind else otherwise

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

_open: WeakSet[Lock] = WeakSet()


class Lock:
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
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnreadableJournal(
                str(journal),
                f"its lock file cannot be opened ({error.strerror})",
                "Check the permissions of the folder, or choose another place for the journal",
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read(self._file)
            os.close(self._file)
            raise AlreadyRunning(
                str(journal),
                _field(holder, "pid", int, 0),
                _field(holder, "host", str, "an unknown host"),
                _field(holder, "since", str, "an unknown time"),
            ) from error
        _open.add(self)
        self._write(json.dumps(_this_process()))

    def release(self) -> None:
        """Let others in. Doing it twice is fine."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                self._write("")
                # A child that was forked a moment ago may not have closed its end yet.
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close our end only. A lock that was inherited stays with the parent, whose it is."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, text: str) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)


def lock_file(journal: Path) -> Path:
    """Where the lock of a journal is."""
    return journal.with_name(journal.name + ".lock")


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


def _read(file: int) -> Any:
    try:
        return json.loads(os.pread(file, 4096, 0))
    except (OSError, ValueError):
        return None


def _field(holder: Any, name: str, kind: type, otherwise: Any) -> Any:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if type(value) is kind else otherwise

"""Who has a name to itself, across the processes of a machine: a small file, and who is in it.

A holder is a process: its pid, and when that process started, because pids are used again. One
that is gone holds nothing, whatever its file says, so a killed process is in nobody's way. On
another machine nobody can look: a holder there counts as alive.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a name, since when (ISO 8601)."""

    pid: int
    host: str
    since: str
    process_started: str
    """When the process began, as its system tells it: with the pid, names it for good."""
    lease: str
    """Which of its leases: a process that has given one up may have another."""

    def is_alive(self) -> bool:
        """Whether the process is there; also if it is on another machine, where nobody can tell."""
        return self.host != socket.gethostname() or started(self.pid) == self.process_started


class Lease:
    """One name, kept in one file. The file stays: somebody might be about to look into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def holder(self) -> Holder | None:
        """Who holds it now, if anybody does."""
        if not self.path.exists():
            return None
        with _opened(self.path) as file:
            return _living(file)

    def take(self) -> Holder | None:
        """Hold it from now on; or who holds it already, and nothing is changed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(self.path) as file:
            other = _living(file)
            if other is None:
                self._mine = _this_process()
                _write(file, json.dumps(asdict(self._mine)))
            return other

    def give_back(self) -> None:
        """Hold it no longer. Nothing happens if somebody else does."""
        with _opened(self.path) as file:
            # A forked child has a copy of this object, but not the lease.
            if _read(file) == self._mine and self._mine.pid == os.getpid():
                _write(file, "")


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The file, with nobody else in it, for a moment; the lock dies with the process."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _living(file: int) -> Holder | None:
    holder = _read(file)
    return holder if holder is not None and holder.is_alive() else None


def _read(file: int) -> Holder | None:
    try:
        found: dict[str, Any] = json.loads(os.pread(file, 4096, 0))
        return Holder(**found)
    except (ValueError, TypeError):
        return None  # empty; or its writer was killed before it was done, and is dead


def _write(file: int, text: str) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, text.encode(), 0)


def _this_process() -> Holder:
    return Holder(
        os.getpid(),
        socket.gethostname(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        started(os.getpid()) or "",
        uuid.uuid4().hex,
    )


def started(pid: int) -> str | None:
    """When a process began, in the words of its system; None if it is not there, or dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The fields stand behind the name of the program, which may hold anything.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None if os.path.exists("/proc/self/stat") else _started_by_ps(pid)
    # A dead process stays in the table until its parent has looked; it does nothing any more.
    return None if fields[0] in (b"Z", b"X") else f"{_boot()} {fields[19].decode()}"


def _boot() -> str:
    """Which start of the system this is: times of processes count from there."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "some boot"


def _started_by_ps(pid: int) -> str | None:  # pragma: no cover - systems without /proc
    told = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return told[1].strip() if len(told) == 2 and not told[0].startswith("Z") else None

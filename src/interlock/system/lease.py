"""A name that one process of a machine holds at a time, recorded in a small file.

A holder is a process, identified by pid and start time because pids are reused. A process that has
ended holds nothing, whatever the file says, so a killed process blocks no other. A process on
another machine cannot be checked: it counts as alive.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from interlock.system.file_locks import FileLock, LockHolder, describe_this_process, parse_holder


@dataclass(frozen=True, slots=True)
class LeaseHolder(LockHolder):
    """A process that holds a name."""

    lease: str = ""
    """Which of its leases: a process may release one and acquire another."""


class Lease:
    """One name, recorded in one file. The file is never removed: another process may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def holder(self) -> LeaseHolder | None:
        """Return the process that holds the name now."""
        if not self.path.exists():
            return None
        with _locked(self.path) as file:
            return _living_holder(file)

    def acquire(self) -> LeaseHolder | None:
        """Acquire the name; or return the process that holds it already, and change nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.path) as file:
            other = _living_holder(file)
            if other is None:
                self._mine = LeaseHolder(**asdict(describe_this_process()), lease=uuid.uuid4().hex)
                file.write(json.dumps(asdict(self._mine)))
            return other

    def release(self) -> None:
        """Release the name. Nothing happens if another process has acquired it meanwhile."""
        with _locked(self.path) as file:
            # A forked child has a copy of this object, but not the lease.
            if _read(file) == self._mine and self._mine.pid == os.getpid():
                file.write("")


@contextmanager
def _locked(path: Path) -> Iterator[FileLock]:
    """The file, locked for a moment against every other process."""
    with closing(FileLock(path)) as file:
        file.acquire()
        yield file


def _living_holder(file: FileLock) -> LeaseHolder | None:
    holder = _read(file)
    return holder if holder is not None and holder.is_alive() else None


def _read(file: FileLock) -> LeaseHolder | None:
    text = file.read()
    holder = parse_holder(text)
    if not holder.pid:
        return None  # empty; or its writer was killed while writing, and is dead
    return LeaseHolder(**asdict(holder), lease=str(json.loads(text).get("lease", "")))

"""One run per project folder, even if `.interlock/` is deleted while the run is in progress.

The lock is on the project's folder itself: an agent that deletes `.interlock/` (`git clean -fdx`)
deletes the journal's lock file with it, and a second run could begin beside the first. A project
inside another project shares files with it, so each run also holds a shared lock on every project
above its own.

On a file system without such locks, the lock of the journal is the only protection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from interlock.errors import AlreadyRunning, UsageError
from interlock.journal.lock import held_by
from interlock.plan.project_file import FILE
from interlock.service.project_folder import ProjectFolder
from interlock.system.file_locks import FileLock


@contextlib.contextmanager
def exclusive_run(folder: ProjectFolder) -> Iterator[None]:
    """Keep other runs out of a project, of those above it and of those inside it."""
    with contextlib.ExitStack() as locks:
        for above in folder.root.parents:
            if (above / FILE).is_file() and not _lock(above, locks, shared=True):
                raise UsageError(
                    f"a run is in progress in {above}, and this project is inside that one: their "
                    "tasks could write the same files. Wait for it to end; `interlock status` in "
                    f"{above} shows it"
                )
        if not _lock(folder.root, locks):
            if _lock(folder.root, locks, shared=True):  # it is held shared, by a run further down
                raise UsageError(
                    f"a run is in progress in a project inside {folder.root}: their tasks could "
                    "write the same files. Wait for it to end, or cancel it there"
                )
            raise already_running(held_by(folder.journal))
        yield


def already_running(running: AlreadyRunning) -> UsageError:
    """The error for a second run, in the words of the command line."""
    if not running.pid:
        return UsageError(
            "a run is already in progress here; its process is unknown, since .interlock does not "
            "name it. If .interlock was deleted, that run ends by itself in a moment"
        )
    return UsageError(
        f"a run is already in progress here, in process {running.pid} since {running.since}; "
        "`interlock status` shows it, `interlock cancel --all` ends it"
    )


def _lock(folder: Path, locks: contextlib.ExitStack, *, shared: bool = False) -> bool:
    """Lock a folder; False if another process holds it. Agents do not inherit the lock."""
    try:
        lock = FileLock(folder, is_folder=True)
    except OSError:
        return True  # no process can lock it
    try:
        acquired = lock.acquire(shared=shared, timeout=0)
    except OSError:  # a file system without locks, or without locks on folders
        lock.close()
        return True
    if not acquired:
        lock.close()
        return False
    locks.callback(lock.close)
    return True

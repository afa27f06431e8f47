"""One run per project folder, whatever becomes of what Interlock keeps in it.

The lock is on the folder itself: an agent that deletes `.interlock/` (`git clean -fdx`) deletes the
lock of the journal with it, and a second run would begin beside the first. A project inside of
another one shares its files, so each run also has a share in the lock of every project above it.

Where the file system has no such locks, that of the journal has to do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from interlock.errors import AlreadyRunning, UsageError
from interlock.journal.lock import held_by
from interlock.plan.project_file import FILE
from interlock.service.project_folder import Place
from interlock.system.file_locks import FileLock


@contextlib.contextmanager
def alone_in(place: Place) -> Iterator[None]:
    """Keep other runs out of a project, of those above it and of those inside of it."""
    with contextlib.ExitStack() as held:
        for above in place.root.parents:
            if (above / FILE).is_file() and not _hold(above, held, shared=True):
                raise UsageError(
                    f"a run is going on in {above}, and this project is inside of that one: their "
                    f"tasks could write the same files. Wait for it; `interlock status` in {above} "
                    "shows it"
                )
        if not _hold(place.root, held):
            if _hold(place.root, held, shared=True):  # then whoever has it shares it
                raise UsageError(
                    f"a run is going on in a project inside of {place.root}: their tasks could "
                    "write the same files. Wait for it, or end it there"
                )
            raise refusal(held_by(place.journal))
        yield


def refusal(running: AlreadyRunning) -> UsageError:
    """What to say to whoever wants to begin a second run."""
    if not running.pid:
        return UsageError(
            "a run is going on here already; which process it is cannot be told, as nothing in "
            ".interlock says so. If that was deleted, the run ends by itself in a moment"
        )
    return UsageError(
        f"a run is going on here already, in process {running.pid} since {running.since}; "
        "`interlock status` shows it, `interlock cancel --all` ends it"
    )


def _hold(folder: Path, held: contextlib.ExitStack, *, shared: bool = False) -> bool:
    """Lock a folder; False if another run holds it. Agents that we start do not inherit it."""
    try:
        lock = FileLock(folder, is_folder=True)
    except OSError:
        return True  # no process can lock it
    try:
        acquired = lock.acquire(shared=shared, timeout=0)
    except OSError:  # a file system without locks, or without those of folders
        lock.close()
        return True
    if not acquired:
        lock.close()
        return False
    held.callback(lock.close)
    return True

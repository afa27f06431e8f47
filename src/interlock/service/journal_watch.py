"""Ends a run whose journal is deleted: nothing it did from then on could be known afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from interlock.errors import InterlockError
from interlock.journal.lock import lock_file

_INTERVAL = 1.0
"""Seconds between two checks."""


class JournalVanished(InterlockError):
    """The journal of a run was deleted, moved or replaced while the run was in progress."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was deleted or replaced while the run was in progress, so its tasks were "
            "stopped, and it cannot be resumed. Keep agents out of .interlock: `git clean -fdx` "
            "spares it with `-e .interlock`"
        )


class JournalWatch:
    """Checks at intervals that the journal of a run is still the same file."""

    def __init__(self, journal: Path) -> None:
        self._files = journal, lock_file(journal.resolve())
        self._known: dict[Path, tuple[int, int] | None] = {}

    @contextlib.asynccontextmanager
    async def ends_the_block(self) -> AsyncIterator[None]:
        """Leave the block by JournalVanished as soon as the journal is gone."""
        self._known = {path: _identity(path) for path in self._files}
        try:
            async with asyncio.timeout(None) as until:
                checking = asyncio.create_task(
                    self._keep_checking(until), name="interlock-journal-watch"
                )
                try:
                    yield
                finally:
                    checking.cancel()
                    await asyncio.wait([checking])
        except TimeoutError:
            self.check()
            raise  # it came from inside the block

    def check(self) -> None:
        """Raise JournalVanished if the journal is gone."""
        for path, known in self._known.items():
            if _identity(path) != known:
                raise JournalVanished(path)

    async def _keep_checking(self, until: asyncio.Timeout) -> None:
        try:
            while True:
                await asyncio.sleep(_INTERVAL)
                self.check()
        except JournalVanished:
            until.reschedule(asyncio.get_running_loop().time())


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""Whether any agent that ran for a journal is left, whichever coordinator started it.

Every supervisor of an agent inherits an open file with a shared lock on it. It closes the file by
ending, once nothing of its agent is left. So when the next coordinator can have the lock
exclusively, no supervisor is left.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from interlock.system.file_locks import FileLock


class AgentsLock:
    """A lock file beside the journal, held (shared) by the supervisors of its agents."""

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(journal.name + ".agents.lock")

    def is_free(self) -> bool:
        """Whether no supervisor is left. None can start meanwhile: we hold the journal's lock."""
        with closing(FileLock(self.path)) as lock:
            return lock.acquire(timeout=0)

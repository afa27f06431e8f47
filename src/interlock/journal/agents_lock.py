"""Whether anything is left of the agents that ran for a journal, whoever coordinated them.

Every supervisor of an agent inherits an open file with a shared lock on it (`flock`). It closes the
file by ending, when nothing is left of its agent. So the next coordinator can know: the lock can be
had for oneself alone when no supervisor is there any more.
"""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class AgentsLock:
    """A file beside the journal. It is never removed, as somebody might be about to lock it."""

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(journal.name + ".agents.lock")

    def is_free(self) -> bool:
        """Whether no supervisor is left. Nobody takes it meanwhile: we have the journal."""
        opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(opened)
        return True

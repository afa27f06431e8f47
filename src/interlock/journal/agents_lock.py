"""Whether anything is left of the agents that ran for a journal, whoever coordinated them.

Every supervisor of an agent inherits one open file, on which there is a shared lock (`flock`). The
lock is free when the last of them has closed it, and they do that by ending, when nothing is left
of their agents. So the next coordinator knows: it asks for the lock for itself alone.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from weakref import WeakSet

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_open: WeakSet[AgentsLock] = WeakSet()


class AgentsLock:
    """Used by whoever holds the lock of the journal itself, so by one process at a time."""

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(journal.name + ".agents.lock")
        self.descriptor: int | None = None
        """What supervisors inherit; None before `is_free`."""

    def is_free(self) -> bool:
        """Whether no supervisor of an earlier coordinator is left. If so, ours may begin."""
        if self.descriptor is not None:
            return True
        opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Nobody can come in between: no other coordinator has the journal.
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            return False
        except BaseException:
            os.close(opened)
            raise
        self.descriptor = opened
        _open.add(self)
        return True

    def release(self) -> None:
        """Close our end. Supervisors that are left hold theirs. Doing it twice is fine."""
        if self.descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = None


def _forget_all() -> None:
    for each in list(_open):
        each.release()


if hasattr(os, "register_at_fork"):
    # Otherwise a forked child that outlives us would be taken for an agent.
    os.register_at_fork(after_in_child=_forget_all)

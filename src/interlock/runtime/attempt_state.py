"""What the runtime knows of a living attempt besides what its agent sees (`TaskContext`)."""

from __future__ import annotations

from interlock.execution.ending import Ending
from interlock.execution.workspaces.port import PreparedWorkspace, ReleaseReason


class AttemptState:
    """How far an attempt is. Written by `Attempts` only."""

    __slots__ = ("ending", "has_started", "reason", "workspace")

    def __init__(self) -> None:
        self.workspace: PreparedWorkspace | None = None
        """From prepare until release."""
        self.has_started = False
        """Whether a backend has been given the job."""
        self.ending: Ending | None = None
        """How it ended, as long as the kernel has not been told."""
        self.reason = ReleaseReason.NOT_STARTED

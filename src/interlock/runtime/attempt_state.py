"""What the runtime knows of a living attempt besides what its agent sees (`TaskContext`)."""

from __future__ import annotations

from pathlib import Path

from interlock.execution.ending import Ending
from interlock.execution.workspaces.port import PreparedWorkspace, ReleaseReason, WorkspaceRelease

NOT_STARTED, SUCCEEDED, FAILED, STOPPED = map(WorkspaceRelease, ReleaseReason)
"""How a workspace is released, without an audit."""


class AttemptState:
    """How far an attempt is. Written by `Attempts` only."""

    __slots__ = ("ending", "folder", "has_started", "release", "workspace")

    def __init__(self) -> None:
        self.workspace: PreparedWorkspace | None = None
        """From prepare until release."""
        self.folder: Path | None = None
        """Where it works, from prepare on."""
        self.has_started = False
        """Whether a backend has been given the job."""
        self.ending: Ending | None = None
        """How it ended, as long as the kernel has not been told."""
        self.release = NOT_STARTED
        """How its workspace will be released."""

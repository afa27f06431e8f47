"""The `shared` workspace: every attempt works in the project folder itself.

Claims keep attempts apart. There is nothing to prepare and nothing to give up. What an attempt has
changed is not known here: other attempts, and people, change the same folder at the same time.
"""

from __future__ import annotations

from pathlib import Path

from interlock.execution.workspaces.port import (
    PreparedWorkspace,
    WorkspaceAudit,
    WorkspaceCaps,
    WorkspaceRelease,
    WorkspaceRequest,
)


class SharedWorkspaces:
    """Answers every step at once, with the same folder."""

    def __init__(self, folder: Path) -> None:
        self._workspace = PreparedWorkspace(folder)
        self.caps = WorkspaceCaps(audits=False, fixed=self._workspace)

    def prepare(self, _request: WorkspaceRequest) -> PreparedWorkspace:
        """The project folder."""
        return self._workspace

    def audit(self, _workspace: PreparedWorkspace) -> WorkspaceAudit:
        """Nothing is known."""
        return WorkspaceAudit()

    def release(self, _workspace: PreparedWorkspace, _how: WorkspaceRelease) -> None:
        """Nothing to do."""

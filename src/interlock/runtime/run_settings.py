"""The options of a run that do not change while it goes on."""

from __future__ import annotations

from typing import NamedTuple

from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.limits.options import Limits
from interlock.runtime.project import ProjectAgents


class RunSettings(NamedTuple):
    """The options of a run that do not change."""

    workspace: WorkspacePaths
    limits: Limits
    grace: float
    """Seconds to wait for attempts that do not stop."""
    agents: ProjectAgents | None = None
    """Those of the project file, if there is one."""
    max_outcomes: int | None = None
    """The outcomes of so many tasks are kept; None: of all."""
    refuses_unserializable: bool = True
    """Whether a result that the journal cannot hold is a failure."""

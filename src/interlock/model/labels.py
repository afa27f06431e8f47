"""Labels that Interlock itself puts on tasks. They are part of the journal: the names are fixed."""

from __future__ import annotations

AGENT_LABEL = "agent"
"""The name of the task's agent in the project file."""

RETRY_OF_LABEL = "retry_of"
"""On a follow-up: the id of the task that it repeats. Its success counts for that task."""

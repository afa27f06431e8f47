"""The agents of a project, as rows of a table and as JSON."""

from __future__ import annotations

import shlex
import shutil
from typing import Any

from interlock.plan.records import AgentSpec
from interlock.views.cli.agents_table import AgentRow


def agent_row(spec: AgentSpec) -> AgentRow:
    """An agent as a row of the table."""
    return AgentRow(
        spec.name,
        _runs(spec),
        spec.owns,
        spec.instances,
        "" if spec.workspace == "shared" else spec.workspace,
        "" if spec.guard == "none" else spec.guard,
        tuple(str(each) for each in spec.uses if not each.resource.startswith("agent:")),
        "" if is_installed(spec) else "not installed",
    )


def agent_json(spec: AgentSpec) -> dict[str, Any]:
    """An agent as JSON."""
    return {
        "name": spec.name,
        "kind": "python" if spec.command is None else "command",
        "runs": _runs(spec),
        "installed": is_installed(spec),
        "owns": list(spec.owns),
        "instances": spec.instances,
        "uses": [str(each) for each in spec.uses],
        "timeout": spec.timeout,
        "attempts": spec.retry.attempts if spec.retry else 1,
        "workspace": spec.workspace,
        "guard": spec.guard,
        "description": spec.description,
    }


def is_installed(spec: AgentSpec) -> bool:
    """Whether the program of an agent is installed. Python agents are checked by `doctor`."""
    return spec.command is None or shutil.which(spec.command.argv[0]) is not None


def _runs(spec: AgentSpec) -> str:
    return spec.python or "" if spec.command is None else shlex.join(spec.command.argv)

"""From the arguments of `run` and `delegate` to a request and its plan."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from interlock.errors import InvalidOption, UsageError
from interlock.model.redaction import HIDDEN
from interlock.plan.env_file import secret_values
from interlock.plan.plan_file import load_plan, plan_of_prompts
from interlock.plan.records import Plan, Project
from interlock.service.project_folder import ProjectFolder
from interlock.service.run_request import RunRequest
from interlock.views.cli.printing import complain


def plan_for(request: RunRequest, project: Project, folder: ProjectFolder) -> Plan:
    """The plan that a request names, or the plan of its prompts."""
    if not request.plan:
        return plan_of_prompts(request.texts, project)
    hidden = [name for name, value in request.variables.items() if HIDDEN in value]
    if hidden:
        raise UsageError(
            f"{', '.join(hidden)} contained a secret, which is not stored; give it again with "
            f"--set {hidden[0]}=..., or pass the secret to the agent by name"
        )
    return load_plan(
        folder.root / request.plan,
        project,
        variables=request.variables,
        only=request.only,
    )


def plan_path(folder: ProjectFolder, plan: str) -> str:
    """The path of a plan relative to the project: a resume may come from another folder."""
    return os.path.relpath(Path(plan).absolute(), folder.root)


def is_plan(what: Sequence[str]) -> bool:
    """Whether the arguments name a plan file; otherwise they are prompts."""
    if len(what) != 1:
        return False
    return what[0].endswith((".yaml", ".yml")) or (
        "\n" not in what[0] and len(what[0]) < 1000 and Path(what[0]).is_file()
    )


def check_no_plan_among_prompts(what: Sequence[str]) -> None:
    """Refuse a mixture of plan files and prompts."""
    for each in what:
        if len(what) > 1 and each.endswith((".yaml", ".yml")) and Path(each).is_file():
            raise UsageError(f"{each} is a plan file; give one plan, or only prompts")


def check_no_secrets(request: RunRequest, project: Project) -> None:
    """Refuse a secret on the command line: shell history and process lists would show it."""
    texts = [*(text for _, text in request.texts), *request.variables.values()]
    for name, value in secret_values(project, os.environ).items():
        if any(value in text for text in texts):
            raise UsageError(
                f"the value of the secret {name} is on the command line; pass it to the agents "
                "that need it by name, with `secrets` in interlock.yaml"
            )


def split_agent(text: str, agents: Iterable[str]) -> tuple[str | None, str]:
    """Split `agent: prompt`. What precedes the colon counts only if an agent has that name."""
    name, colon, rest = text.partition(":")
    name, known = name.strip(), list(agents)
    if colon and name in known:
        return name, rest.strip()
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if colon and close and " " not in name:
        complain(
            f"there is no agent {name!r} (did you mean {close[0]!r}?); "
            "the whole text is taken as the prompt"
        )
    return None, text.strip()


def default_agent(project: Project) -> str:
    """The agent for prompts if none is named: the default of the project, or its only agent."""
    if project.defaults.agent is not None:
        return project.defaults.agent
    if len(project.agents) == 1:
        return next(iter(project.agents))
    if not project.agents:
        raise UsageError(
            "no agent is configured here; `interlock init` writes a project file to start from"
        )
    raise UsageError(f"which agent? Use -a with one of: {', '.join(project.agents)}")


def parse_variables(given: Sequence[str]) -> dict[str, str]:
    """The values of `--set KEY=VALUE`."""
    variables = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise InvalidOption(f"--set {each!r} is not of the form KEY=VALUE")
        variables[name.strip()] = value
    return variables

"""`init`, `agents`, `doctor`, `completion` and `version`: set up a project and check it."""

from __future__ import annotations

import os
import platform
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.completion import get_completion_inspect_parameters

from interlock.errors import UsageError
from interlock.service.project_folder import ProjectFolder, find_project
from interlock.version import __version__
from interlock.views.cli.agents_table import agents as agents_table
from interlock.views.cli.doctor import examine
from interlock.views.cli.init_files import installed_agents, plan_file_text, project_file_text
from interlock.views.cli.options import Json
from interlock.views.cli.printing import print_json, say
from interlock.views.cli.project_agents import agent_json, agent_row
from interlock.views.terminal.console import make_console


class CompletionShell(StrEnum):
    """Shells for which there is a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (init, agents, doctor, completion, version):
        app.command()(command)


def init(
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> int:
    """Write a project file and a first plan.

    Both are commented and work as they are. Coding agents that are installed are detected.
    """
    root = Path.cwd()
    found = installed_agents()
    files = {
        root / "interlock.yaml": project_file_text(root, found),
        root / "plan.yaml": plan_file_text(found),
    }
    there = [path.name for path in files if path.exists()]
    if there and not force:
        raise UsageError(
            f"{' and '.join(there)} already {'exists' if len(there) == 1 else 'exist'}; "
            "use --force to overwrite"
        )
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    ProjectFolder(root).make()
    names = ", ".join(each.name for each in found)
    say(f"Found {names}." if found else "Found no coding agent; `hello` is a placeholder for one.")
    say("Wrote interlock.yaml (the agents) and plan.yaml (the tasks).")
    say("Next: interlock check plan.yaml; interlock run plan.yaml")
    return 0


def agents(as_json: Json = False) -> int:
    """List the agents of the project file."""
    project = find_project().project()
    if not project.agents:
        raise UsageError(
            "no agent is configured here; `interlock init` writes a project file to start from"
        )
    specs = project.agents.values()
    if as_json:
        print_json([agent_json(each) for each in specs])
    else:
        make_console().print(agents_table([agent_row(each) for each in specs]))
    return 0


def doctor(as_json: Json = False) -> int:
    """Check this machine and this project for problems."""
    findings = examine(find_project())
    if as_json:
        print_json([each._asdict() for each in findings])
    else:
        for each in findings:
            say(f"{each.mark} {each.what}: {each.said}")
            if each.help:
                say(f"  {each.help}")
    return 1 if any(not each.fine for each in findings) else 0


def completion(
    context: typer.Context,
    shell: Annotated[CompletionShell, typer.Argument(help="The shell.")],
) -> int:
    """Print a completion script for a shell.

    For bash: eval "$(interlock completion bash)"
    """
    get_completion_inspect_parameters()  # registers the shells
    root = context.find_root().command
    os.environ["_INTERLOCK_COMPLETE"] = f"source_{shell}"
    root.main([], prog_name="interlock")  # prints the script and exits
    return 0


def version(as_json: Json = False) -> int:
    """Print the version."""
    if as_json:
        print_json({"version": __version__, "python": platform.python_version()})
    else:
        print(f"interlock {__version__}")
    return 0

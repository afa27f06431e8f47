"""`check` and `graph`: look at a plan before anything starts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from interlock.errors import UsageError
from interlock.model.claim import write
from interlock.model.conflict import conflicts
from interlock.plan.plan_file import load_plan
from interlock.runtime.project import ProjectAgents, tasks_of
from interlock.service.project_folder import find_project
from interlock.views.cli.graph_text import dot, mermaid
from interlock.views.cli.graph_tree import tree
from interlock.views.cli.options import Json
from interlock.views.cli.plan_conflicts import COMPARED, find_conflicts, nodes, plan_json
from interlock.views.cli.printing import print_json, say
from interlock.views.terminal.console import make_console
from interlock.views.terminal.figures import plural


class GraphFormat(StrEnum):
    """The formats of a graph."""

    TREE = "tree"
    DOT = "dot"
    MERMAID = "mermaid"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(check)
    app.command()(graph)


def check(
    what: Annotated[list[str], typer.Argument(help="A plan file, or two path patterns.")],
    as_json: Json = False,
) -> int:
    """Check a plan, or compare two patterns.

    Lists every error of a plan or, if there is none, which of its tasks take turns and why. For two
    patterns, says whether some path could match both.
    """
    if len(what) == 2:
        return _patterns(what[0], what[1], as_json)
    if len(what) != 1:
        raise UsageError("give one plan file, or two patterns to compare")
    project = find_project().project()
    plan = load_plan(Path(what[0]), project)
    tasks = tasks_of(plan, ProjectAgents(project))
    found = find_conflicts(tasks, project.capacity)
    facts = plan_json(plan, tasks, found) | {"warnings": [*project.warnings, *plan.warnings]}
    if as_json:
        print_json(facts)
        return 0
    for warning in facts["warnings"]:
        say(f"note: {warning}")
    for each in found:
        say(f"{each.one} and {each.other} take turns: {each.about}")
    turns = "no pairs take turns"
    if found:
        turns = f"{plural(len(found), 'pair')} {'takes' if len(found) == 1 else 'take'} turns"
    if len(tasks) > COMPARED:
        turns += f" (among the first {COMPARED:,}, which were compared)"
    say(f"{what[0]} is valid: {plural(len(tasks), 'task')}, {turns}.")
    return 0


def graph(
    plan: Annotated[Path, typer.Argument(help="A plan file.")],
    shape: Annotated[GraphFormat, typer.Option("--as", help="Output format.")] = GraphFormat.TREE,
    as_json: Json = False,
) -> int:
    """Draw the dependencies of a plan."""
    project = find_project().project()
    loaded = load_plan(plan, project)
    tasks = tasks_of(loaded, ProjectAgents(project))
    if as_json:
        print_json(plan_json(loaded, tasks, ()))
    elif shape is GraphFormat.TREE:
        make_console().print(tree(nodes(tasks)))
    else:
        print(dot(nodes(tasks), loaded.name) if shape is GraphFormat.DOT else mermaid(nodes(tasks)))
    return 0


def _patterns(one: str, other: str, as_json: bool) -> int:
    clash = conflicts(write(one), write(other))
    witness = None if clash is None else clash.witness
    if as_json:
        print_json({"patterns": [one, other], "conflict": clash is not None, "witness": witness})
    elif clash is None:
        say(f"{one} and {other} have no path in common.")
    else:
        say(f"{one} and {other} conflict: both match {witness}")
    return 0

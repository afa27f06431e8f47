"""`check` and `graph`: what is to be known of a plan before anything starts."""

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
from interlock.views.cli.plan_conflicts import COMPARED, find_conflicts, nodes, plan_json
from interlock.views.cli.printing import print_json, say
from interlock.views.terminal.console import make_console
from interlock.views.terminal.figures import plural

Json = Annotated[bool, typer.Option("--json", help="Facts as JSON, for programs.")]


class Shape(StrEnum):
    """How a graph is drawn."""

    TREE = "tree"
    DOT = "dot"
    MERMAID = "mermaid"


def add_to(app: typer.Typer) -> None:
    """The commands of this file."""
    app.command()(check)
    app.command()(graph)


def check(
    what: Annotated[list[str], typer.Argument(help="A plan file, or two path patterns.")],
    as_json: Json = False,
) -> int:
    """Check a plan, or compare two patterns.

    Says everything that is wrong with a plan, or which of its tasks take turns and why. Of two
    patterns it says whether there can be a path that both of them mean.
    """
    if len(what) == 2:
        return _patterns(what[0], what[1], as_json)
    if len(what) != 1:
        raise UsageError("give one plan file, or two patterns to compare")
    place = find_project()
    project = place.project()
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
    turns = f"{plural(len(found), 'pair')} of them take turns" if found else "none of them conflict"
    if len(tasks) > COMPARED:
        turns += f" (of the first {COMPARED:,}, which were compared)"
    say(f"{what[0]} is fine: {plural(len(tasks), 'task')}, {turns}.")
    return 0


def graph(
    plan: Annotated[Path, typer.Argument(help="A plan file.")],
    shape: Annotated[Shape, typer.Option("--as", help="What to draw it for.")] = Shape.TREE,
    as_json: Json = False,
) -> int:
    """Draw what comes after what in a plan."""
    project = find_project().project()
    loaded = load_plan(plan, project)
    tasks = tasks_of(loaded, ProjectAgents(project))
    if as_json:
        print_json(plan_json(loaded, tasks, ()))
    elif shape is Shape.TREE:
        make_console().print(tree(nodes(tasks)))
    else:
        print(dot(nodes(tasks), loaded.name) if shape is Shape.DOT else mermaid(nodes(tasks)))
    return 0


def _patterns(one: str, other: str, as_json: bool) -> int:
    clash = conflicts(write(one), write(other))
    witness = None if clash is None else clash.witness
    if as_json:
        print_json({"patterns": [one, other], "conflict": clash is not None, "witness": witness})
    elif clash is None:
        say(f"{one} and {other} have no path in common.")
    else:
        say(f"{one} and {other} conflict: both mean {witness}")
    return 0

"""The dependencies of a plan as a tree: each task below its dependency, with agent and claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from interlock.model import graph
from interlock.views.cli.graph_text import GraphNode
from interlock.views.terminal import safe_text
from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.cells import column, fit_name

_DEEP = 8
"""Beyond this depth, the guides of the outer levels are left out."""


def tree(nodes: Sequence[GraphNode]) -> RenderableType:
    """The tree. A task with several dependencies is drawn below the last one and names them all."""
    if not nodes:
        return Text("no tasks", "dim")
    rows = list(_rows(nodes))
    width = min(48, max(cell_len(guide) + cell_len(name) for guide, name, _ in rows))
    agents = min(20, max(cell_len(safe_text.line(node.agent)) for node in nodes))
    lines = []
    for guide, name, node in rows:
        name = fit_name(name, max(12, width - cell_len(guide)))
        gap = " " * max(0, width - cell_len(guide) - cell_len(name))
        line = Text.assemble((guide, "dim"), (name, "bold"), gap, no_wrap=True, overflow="ellipsis")
        line.append(f"  {column(node.agent, agents)}" if agents else "", "cyan")
        for text, style in _about(node):
            line.append(f"  {safe_text.line(text)}", style)
        line.rstrip()
        lines.append(line)
    return AsciiFallback(Group(*lines))


def _about(node: GraphNode) -> Iterator[tuple[str, str]]:
    if node.claims:
        yield ", ".join(node.claims), "dim"
    if len(node.after) > 1:
        yield f"after {', '.join(dict.fromkeys(node.after))}", "yellow"


def _rows(nodes: Sequence[GraphNode]) -> Iterator[tuple[str, str, GraphNode]]:
    """Guide, name and task of each line. Not recursive, so a chain may be of any length."""
    known = {node.id: node for node in nodes}
    order = graph.topological({node.id: node.after for node in nodes})
    place = {task_id: number for number, task_id in enumerate(order)}
    below: dict[str, list[str]] = {task_id: [] for task_id in order}
    roots = []
    for node in nodes:
        before = [each for each in node.after if each in known]
        if before:
            below[max(before, key=place.__getitem__)].append(node.id)
        else:
            roots.append(node.id)
    todo: list[tuple[str, tuple[bool, ...]]] = [(task_id, ()) for task_id in reversed(roots)]
    while todo:
        task_id, above = todo.pop()
        yield _guide(above), safe_text.line(task_id), known[task_id]
        children = below[task_id]
        for number, child in reversed(list(enumerate(children))):
            todo.append((child, (*above, number == len(children) - 1)))


def _guide(above: tuple[bool, ...]) -> str:
    """The lines before a name. `above`: for each level, whether its task is the last sibling."""
    if not above:
        return ""
    skipped = max(0, len(above) - _DEEP)
    shown = above[skipped:]
    start = f"({skipped} levels) " if skipped else ""
    lines = "".join("   " if last else "│  " for last in shown[:-1])
    return start + lines + ("└─ " if shown[-1] else "├─ ")

"""The dependencies of a plan as DOT and Mermaid. `graph_tree` draws them as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from interlock.views.terminal import safe_text


class GraphNode(Protocol):
    """What a graph needs to know about a task; `TaskFacts` fits."""

    @property
    def id(self) -> str: ...
    @property
    def after(self) -> Sequence[str]: ...
    @property
    def agent(self) -> str: ...
    @property
    def claims(self) -> Sequence[str]: ...


def dot(nodes: Sequence[GraphNode], name: str = "plan") -> str:
    """The graph in the language of Graphviz. An edge leads from a dependency to its dependent."""
    lines = [f"digraph {_dot(name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for node in nodes:
        label = "\\n".join(_dot_text(each) for each in _label(node))
        lines.append(f'  {_dot(node.id)} [label="{label}"];')
    lines += [f"  {_dot(before)} -> {_dot(node)};" for before, node in _edges(nodes)]
    return "\n".join([*lines, "}"]) + "\n"


def mermaid(nodes: Sequence[GraphNode]) -> str:
    """The graph in the language of Mermaid. Ids may contain anything, so nodes are numbered."""
    numbers: dict[str, str] = {}
    for task_id in (each for node in nodes for each in (node.id, *node.after)):
        numbers.setdefault(task_id, f"t{len(numbers)}")
    known = {node.id: node for node in nodes}
    lines = ["flowchart LR"]
    for task_id, number in numbers.items():
        said = _label(known[task_id]) if task_id in known else [safe_text.line(task_id)]
        label = "<br>".join(_mermaid_text(each) for each in said)
        lines.append(f'  {number}["{label}"]')
    lines += [f"  {numbers[before]} --> {numbers[node]}" for before, node in _edges(nodes)]
    return "\n".join(lines) + "\n"


def _label(node: GraphNode) -> list[str]:
    said = [node.id, node.agent, *node.claims]
    return [safe_text.line(each) for each in said if each]


def _edges(nodes: Sequence[GraphNode]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        for before in dict.fromkeys(node.after):
            yield before, node.id


def _dot(text: str) -> str:
    return f'"{_dot_text(safe_text.line(text))}"'


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _mermaid_text(text: str) -> str:
    """Escape every character that means something to Mermaid, Markdown or HTML."""
    return re.sub(r"[^\w ./-]", lambda found: f"#{ord(found[0])};", text)

"""The table of `interlock agents`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.cells import shown


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One row of the table."""

    name: str
    runs: str
    """The command line, or `module:function`."""
    owns: tuple[str, ...] = ()
    instances: int | None = None
    """How many may run at once; None if only the slots limit it."""
    workspace: str = ""
    guard: str = ""
    uses: tuple[str, ...] = ()
    note: str = ""
    """A problem, if there is one: `not installed`."""


def agents(rows: Sequence[AgentRow]) -> RenderableType:
    """The agents as a table. Empty columns are left out."""
    if not rows:
        return AsciiFallback(Text("no agents: list them under `agents` in interlock.yaml", "dim"))
    columns = {
        "agent": [shown(row.name, "bold") for row in rows],
        "runs": [shown(row.runs) for row in rows],
        "owns": [shown(", ".join(row.owns)) for row in rows],
        "uses": [shown(", ".join(row.uses)) for row in rows],
        "at once": [Text("" if row.instances is None else str(row.instances)) for row in rows],
        "workspace": [shown(row.workspace) for row in rows],
        "guard": [shown(row.guard) for row in rows],
        "": [shown(row.note, "yellow") for row in rows],
    }
    filled = {title: cells for title, cells in columns.items() if any(cells)}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in filled:
        table.add_column(title, overflow="fold")
    for cells in zip(*filled.values(), strict=True):
        table.add_row(*cells)
    return AsciiFallback(table)

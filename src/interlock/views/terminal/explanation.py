"""The output of `interlock why`: every reason as a sentence, and suggestions."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.duration import span
from interlock.model.outcome import State
from interlock.model.why import Explanation, describe_state
from interlock.views.terminal import safe_text
from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.cells import shown
from interlock.views.terminal.reasons import ending
from interlock.views.terminal.state_styles import STYLES


def render_explanation(explanation: Explanation, task: TaskFacts | None = None) -> RenderableType:
    """The whole explanation; `task` says how the task ended, if it has."""
    look = STYLES[explanation.state]
    name = safe_text.line(explanation.task_id), "bold"
    age = describe_state(explanation.state, explanation.at - explanation.since)
    head = Text.assemble((look.mark, look.style), " ", name, f" {age}")
    if not explanation.reasons and not explanation.state.is_end:
        running = explanation.state is State.RUNNING
        head.append(
            "; it is not waiting for anything"
            if running
            else ": nothing is keeping it from starting",
            "dim",
        )
    parts: list[RenderableType] = [head]
    if task is not None and explanation.state.is_end:
        parts += _ended(task)
    if explanation.reasons:
        reasons = [shown(reason.describe(explanation.at)) for reason in explanation.reasons]
        parts += [Text(), _bullets(reasons, "–")]
    late = explanation.clears_at is not None and explanation.clears_at <= explanation.at
    if explanation.clears_at is not None and explanation.reasons and not late:
        clears = span(explanation.clears_at - explanation.at)
        parts += [Text(), Padding(Text(f"expected to clear in {clears}"), (0, 0, 0, 2))]
    if explanation.suggestions:
        parts += [Text(), Padding(Text("suggestions", "bold"), (0, 0, 0, 2))]
        parts.append(_bullets([shown(each) for each in explanation.suggestions], "→"))
    return AsciiFallback(Group(*parts))


def _ended(task: TaskFacts) -> list[RenderableType]:
    said = [shown(each) for each in safe_text.lines(ending(task)) if each.strip()]
    if task.log and task.state is not State.SUCCEEDED:
        said.append(Text.assemble(("log: ", "dim"), safe_text.line(task.log)))
    return [Text(), Padding(Group(*said), (0, 0, 0, 2))] if said else []


def _bullets(texts: list[Text], bullet: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for text in texts:
        grid.add_row(Text(bullet, "dim"), text)
    return Padding(grid, (0, 0, 0, 2))

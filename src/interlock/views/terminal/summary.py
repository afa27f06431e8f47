"""The summary at the end of a run: outcomes, figures, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.duration import span
from interlock.model.outcome import State
from interlock.views.terminal import figures, safe_text
from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.cells import column, cut, fit, joined, shown
from interlock.views.terminal.figures import clock
from interlock.views.terminal.reasons import ending
from interlock.views.terminal.state_styles import FAILURES, STYLES, mark

_ALL = 30
"""In a larger run, only tasks that ended without success are listed."""
_MOST = 30
"""The maximum length of a list."""
_WORTH = 8
"""With fewer cells than this, the text is left out."""
_FAILURES = 10
"""How many failures are shown with their error and log."""


def summary(facts: RunFacts) -> RenderableType:
    """The whole summary."""
    parts = [_title(facts), Text(), _outcomes(facts)]
    failures = [task for task in facts.tasks if task.state in FAILURES]
    for task in failures[:_FAILURES]:
        parts += [Text(), _failure(task)]
    parts += [Text(), _figures(facts)]
    steps = list(next_steps(facts))
    if steps:
        parts += [Text(), _steps(steps)]
    return AsciiFallback(Group(*parts))


def _title(facts: RunFacts) -> Text:
    progress = facts.progress
    title = Text.assemble((safe_text.line(facts.plan) or "interlock", "bold"))
    open_tasks = progress.total - progress.ended
    took = span(facts.duration)
    if not progress.total:
        said, style = "no tasks", ""
    elif open_tasks:
        said = f"stopped after {took}, {figures.plural(open_tasks, 'task')} not finished"
        style = "yellow"
    elif progress.succeeded == progress.total:
        said, style = f"all {progress.total} succeeded in {took}", "green"
        if progress.total == 1:
            said = f"succeeded in {took}"
    else:
        said, style = f"{progress.succeeded} of {progress.total} succeeded in {took}", "red"
    title.append(f"  {said}", style)
    if facts.run_id:
        title.append(f"  run {safe_text.line(facts.run_id)}", "dim")
    return title


def _outcomes(facts: RunFacts) -> RenderableType:
    listed = list(facts.tasks)
    if len(listed) > _ALL:
        listed = [t for t in listed if t.state.is_end and t.state is not State.SUCCEEDED]
    counts = joined(list(_counts(facts)), "   ")
    parts: list[RenderableType] = [Padding(counts, (0, 0, 0, 1))]
    if listed:
        parts += [Text(), _Rows(listed[:_MOST])]
    if len(listed) > _MOST:
        parts.append(Text(f" and {len(listed) - _MOST} more: interlock status --json", "dim"))
    return Group(*parts)


def _counts(facts: RunFacts) -> Iterator[Text]:
    for state, look in STYLES.items():
        count = getattr(facts.progress, state)
        if count:
            yield Text.assemble((look.mark, look.style), f" {count} {look.word}")


class _Rows:
    """One line per task. Its text gets the room that the other columns leave."""

    def __init__(self, tasks: Sequence[TaskFacts]) -> None:
        self._tasks = tasks

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [_row(task) for task in self._tasks]
        widths = [max(cell_len(row[place].plain) for row in rows) for place in range(4)]
        room = options.max_width - 1
        widths[0] = min(widths[0], max(12, room // 2))
        widths[2] = min(widths[2], 20)
        for row in rows:
            name, outcome, agent, took, told = row
            cells = [
                Text.assemble(" ", (column(name.plain, widths[0]), name.style)),
                Text(column(outcome.plain, widths[1]), outcome.style),
                Text(column(agent.plain, widths[2]), agent.style),
                Text(took.plain.rjust(widths[3])),
            ]
            line = joined(cells, "  ")
            left = room - line.cell_len - 2
            if told.plain and left >= _WORTH:
                line = joined([line, Text(fit(told.plain, left), told.style)], "  ")
            yield cut(line, options.max_width)


def _row(task: TaskFacts) -> tuple[Text, ...]:
    look = STYLES[task.state]
    outcome = look.word
    if task.attempt > 1:
        outcome += f", attempt {task.attempt}"
    told = "" if task.state in FAILURES else fit(ending(task), 200)
    return (
        Text(f"{look.mark} {safe_text.line(task.id)}", look.style),
        Text(outcome, look.style),
        shown(task.agent, "dim"),
        Text(clock(task.duration) if task.state.is_end and task.attempt else ""),
        Text(told, "dim"),
    )


def _failure(task: TaskFacts) -> RenderableType:
    look = STYLES[task.state]
    attempts = f" after {figures.plural(task.attempt, 'attempt')}" if task.attempt else ""
    head = Text.assemble(
        " ", mark(task.state), " ", (safe_text.line(task.id), "bold"), f" {look.word}{attempts}"
    )
    lines = [Text(each) for each in safe_text.lines(ending(task))[:8] if each.strip()]
    if task.log:
        lines.append(Text.assemble(("log: ", "dim"), safe_text.line(task.log)))
    return Group(head, Padding(Group(*lines), (0, 0, 0, 5)))


def _figures(facts: RunFacts) -> Text:
    parts = [Text(span(facts.duration), "bold")]
    if facts.saved >= 1 and facts.duration > 0:
        times = facts.one_by_one / facts.duration
        saved = f"{span(facts.saved)} saved, {times:.1f} × as fast as one after another"
        parts.append(Text(saved, "green"))
    if facts.cost:
        parts.append(Text(f"about {figures.money(facts.cost)}"))
    tokens = sum(task.tokens for task in facts.tasks)
    if tokens:
        parts.append(Text(figures.tokens(tokens)))
    return Text.assemble(" ", joined(parts, "  ·  "))


def next_steps(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Commands that the user may want next, and the purpose of each."""
    for task in facts.tasks:
        if task.state is State.NEEDS_YOU:
            yield f'interlock answer {_quoted(task.id)} "…"', fit(task.question, 60)
            break
    failed = [task for task in facts.tasks if task.state in FAILURES]
    if failed:
        yield f"interlock logs {_quoted(failed[0].id)}", "show what it printed"
    if facts.progress.total > facts.progress.ended:
        yield "interlock run --resume", "continue; successful tasks are not repeated"
    elif facts.progress.succeeded < facts.progress.total:
        yield "interlock run --resume", "repeat what did not succeed"


def _steps(steps: list[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for number, (command, purpose) in enumerate(steps):
        head = Text("" if number else "next", "dim")
        table.add_row(head, Text(command, "cyan"), Text(purpose, "dim"))
    return Padding(table, (0, 0, 0, 1))


def _quoted(task_id: str) -> str:
    """An id, quoted for a shell."""
    return shlex.quote(safe_text.line(task_id))

"""One row of the live view for one task: mark, name, agent, time, and a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.outcome import State
from interlock.views.terminal import safe_text, state_styles
from interlock.views.terminal.cells import column, cut, fit
from interlock.views.terminal.figures import clock
from interlock.views.terminal.reasons import ending
from interlock.views.terminal.state_styles import STOPPING, STYLES, StateStyle

_SAMPLE = 1_000
"""The widths of columns depend on this many tasks at most."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of columns. They depend on all tasks, not only on visible ones: so they stay."""

    width: int
    name: int
    agent: int
    time: int
    bar: int

    @classmethod
    def of(cls, tasks: tuple[TaskFacts, ...], duration: float, width: int) -> Columns:
        """The widths that fit these tasks into `width` cells."""
        some = tasks[:_SAMPLE]
        name = min(_widest(task.id for task in some), max(12, width * 28 // 100))
        agent = min(_widest(task.agent for task in some), max(8, width // 10)) if width > 55 else 0
        told = any(task.fraction is not None or task.estimate is not None for task in some)
        bar = (0 if width < 64 else 20 if width > 119 else 8) if told else 0
        percent = 5 if told else 0
        return cls(width, name, agent, 7 if duration >= 3600 else 5, bar + percent)

    def row(self, look: StateStyle, task: TaskFacts, time: str, rest: Text) -> Text:
        """A row of at most the full width."""
        head = Text.assemble(
            " ",
            (look.mark, look.style),
            " ",
            column(task.id, min(self.name, max(0, self.width - 3))),
            "  ",
            (f"{column(task.agent, self.agent)}  " if self.agent else "", "dim"),
            f"{time:>{self.time}}  ",
        )
        if head.cell_len >= self.width:
            return cut(head, self.width)
        head.append_text(cut(rest, self.width - head.cell_len))
        return head


def running(task: TaskFacts | None, columns: Columns, now: float) -> Text:
    """A running attempt, or a free row."""
    if task is None:
        return Text(f" {state_styles.FREE.mark}", state_styles.FREE.style)
    began = task.started_at if task.started_at is not None else task.since
    if task.stopping:
        end = task.ended_at or task.since
        said = f"{STYLES[task.state].word}, told to stop, has not exited for {clock(now - end)}"
        return columns.row(STOPPING, task, clock(now - began), Text(said, "yellow"))
    rest = _progress(task, now - began, columns.bar)
    if task.attempt > 1:
        rest.append(f"attempt {task.attempt} of {max(task.attempts, task.attempt)}  ", "yellow")
    rest.append(safe_text.line(task.message or task.prompt), "" if task.message else "dim")
    return columns.row(STYLES[State.RUNNING], task, clock(now - began), rest)


def waiting(task: TaskFacts, columns: Columns, now: float, reason: str) -> Text:
    """A waiting task, and why it waits."""
    rest = Text(safe_text.line(reason), "dim")
    return columns.row(STYLES[task.state], task, clock(now - task.since), rest)


def question(task: TaskFacts, columns: Columns, now: float) -> Text:
    """A task that needs you, and its question."""
    look = STYLES[State.NEEDS_YOU]
    rest = Text(safe_text.line(task.question), "bold")
    return columns.row(look, task, clock(now - task.since), rest)


def ended(task: TaskFacts, columns: Columns) -> Text:
    """A task that has ended."""
    look = STYLES[task.state]
    rest = Text()
    if task.state is not State.SUCCEEDED:
        rest.append(look.word, look.style)
    if task.attempt > 1:
        rest.append(f"{', ' if rest else ''}attempt {task.attempt}", "yellow")
    told = safe_text.line(ending(task))
    if told:
        rest.append(f"{'  ' if rest else ''}{told}", "dim")
    return columns.row(look, task, clock(task.duration) if task.attempt else "", rest)


def _progress(task: TaskFacts, had: float, room: int) -> Text:
    """The progress that it reports; otherwise, dimmed, how much of its estimate has passed."""
    if not room:
        return Text()
    if task.fraction is not None:
        part, style, said = task.fraction, "cyan", "{:.0%}"
    elif task.estimate:
        part, style, said = had / task.estimate, "dim cyan", "~{:.0%}"
        if part >= 1:  # it has exceeded its estimate
            said = "late"
    else:
        return Text(" " * (room + 2))
    part = min(max(part, 0.0), 1.0)
    size = room - 5
    done = round(part * size)
    return Text.assemble(
        ("━" * done, style), ("─" * (size - done), "dim"), (f"{said.format(part):>5}  ", style)
    )


def _widest(texts: Iterable[str]) -> int:
    return max((cell_len(fit(text, 200)) for text in texts), default=0)

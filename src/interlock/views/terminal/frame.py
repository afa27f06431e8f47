"""One frame of the live view: lines that exactly fill a terminal of any size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.outcome import State
from interlock.model.why import Explanation
from interlock.views.terminal import footer, task_rows
from interlock.views.terminal.cells import cut, fit, fit_name, spread
from interlock.views.terminal.figures import plural
from interlock.views.terminal.reasons import summarize
from interlock.views.terminal.row_allocation import RowDemand, allocate_rows
from interlock.views.terminal.running_rows import RunningRows
from interlock.views.terminal.state_styles import STYLES

Why = Callable[[str], Explanation | None]

_HEADINGS = 12
"""With fewer rows than this, parts have no headings."""
_AIR = 13
"""With fewer rows than this besides those of running tasks, there are no blank lines."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the view: its size, and how a number of its rows is drawn."""

    title: str
    size: int
    least: int
    enough: int
    draw: Callable[[int], Iterator[Text]]
    count: int | None = None
    """The number in the heading, if it is not the number of rows."""
    hint: str = ""
    heading: bool = True


def frame(
    facts: RunFacts,
    why: Why,
    width: int,
    height: int,
    *,
    running_rows: Sequence[TaskFacts | None] | None = None,
    left: float | None = None,
    hints: footer.Hints | None = None,
) -> list[Text]:
    """Exactly `height` lines of at most `width` cells. `why` is called for visible rows only."""
    if width < 1 or height < 1:
        return []
    last = _footer(facts, footer.times(facts, left, width, hints), width, height)
    first = [_header(facts, width)] if height > 3 else []
    room = height - len(first) - len(last)
    running_rows = RunningRows().place(facts.tasks) if running_rows is None else running_rows
    air = room >= _AIR + max(facts.slots, 4)
    middle = _middle(_parts(facts, why, width, running_rows), width, room, air)
    return [*first, *middle, *[Text()] * (room - len(middle)), *last]


def _header(facts: RunFacts, width: int) -> Text:
    name = fit_name(facts.plan or "interlock", max(1, width - 2))
    left = Text.assemble(" ", (name, "bold"))
    state, style = plural(facts.slots, "slot") if facts.slots else "", "dim"
    if facts.ended_at is not None:
        state, style = "ended", "bold"
    elif not facts.active:
        state, style = "interrupted", "bold yellow"
    elif facts.draining:
        state, style = "stopping: running tasks may finish", "bold yellow"
    elif facts.paused:
        state, style = "paused", "bold yellow"
    run = Text(fit(f"run {facts.run_id}", 30), "dim") if facts.run_id else Text()
    right = Text.assemble(run, "  " if run and state else "", (state, style), " ")
    if left.cell_len + right.cell_len + 2 > width:
        right = Text(f"{state} ", style)
    return spread(cut(left, width), right, width)


def _footer(facts: RunFacts, times: Text, width: int, height: int) -> list[Text]:
    lines = [footer.counts(facts, width), times]
    return [footer.bar(facts, width), *lines] if height >= 10 else lines[:height]


def _parts(
    facts: RunFacts, why: Why, width: int, running_rows: Sequence[TaskFacts | None]
) -> list[Part]:
    """The parts, most important first; this is also their order on the screen."""
    columns = task_rows.Columns.of(facts.tasks, facts.duration, width)
    asks = [task for task in facts.tasks if task.state is State.NEEDS_YOU and not task.stopping]
    waits = [task for task in facts.tasks if task.state in (State.WAITING, State.RETRYING)]
    blocked = [task for task in facts.tasks if task.state is State.BLOCKED]
    ends = sorted(
        (task for task in facts.tasks if task.state.is_end and not task.stopping),
        key=lambda task: -(task.ended_at or task.since),
    )
    now = facts.at

    def waiting(count: int) -> Iterator[Text]:
        for task in waits[:count]:
            yield task_rows.waiting(task, columns, now, summarize(why(task.id)))

    return [
        Part(
            "Needs you",
            len(asks),
            *(2, 4),
            lambda count: (task_rows.question(task, columns, now) for task in asks[:count]),
            hint='interlock answer TASK "…"',
        ),
        Part(
            "Running",
            len(running_rows),
            *(3, max(4, facts.slots)),
            lambda count: (task_rows.running(task, columns, now) for task in running_rows[:count]),
            sum(task is not None for task in running_rows),
        ),
        Part("Waiting", len(waits), 2, 6, waiting, hint="interlock why TASK"),
        Part(
            "Blocked",
            bool(blocked),
            *(1, 1),
            lambda _: iter([_blocked(blocked, facts.tasks, width)]),
            heading=False,
        ),
        Part(
            "Ended",
            len(ends),
            *(2, 8),
            lambda count: (task_rows.ended(task, columns) for task in ends[:count]),
        ),
    ]


def _middle(parts: list[Part], width: int, room: int, air: bool) -> list[Text]:
    seen = [part for part in parts if part.size]
    heads = (1 + air) if room >= _HEADINGS else 0
    free = room - air - sum(heads if part.heading else air for part in seen)
    given = allocate_rows(
        max(0, free), [RowDemand(part.size, part.least, part.enough) for part in seen]
    )
    lines: list[Text] = []
    for part, count in zip(seen, given, strict=True):
        if not count:
            continue
        if air:
            lines.append(Text())
        if heads and part.heading:
            lines.append(_heading(part, count, width))
        lines += part.draw(count)
    return lines[:room]


def _heading(part: Part, count: int, width: int) -> Text:
    size = part.size if part.count is None else part.count
    said = f"{count} of {size}" if count < part.size else str(size)
    title = Text.assemble(" ", (part.title, "bold"), (f" {said}", "dim"))
    return spread(title, Text(f"{part.hint} ", "dim"), width)


def _blocked(blocked: list[TaskFacts], tasks: Sequence[TaskFacts], width: int) -> Text:
    """How many tasks are blocked, and by which tasks most of them."""
    look = STYLES[State.BLOCKED]
    unfinished = {task.id for task in tasks if not task.state.is_end}
    behind = Counter(each for task in blocked for each in task.after if each in unfinished)
    blockers = ", ".join(
        fit_name(task, 24) + f" ({count})" * (count > 1) for task, count in behind.most_common(5)
    )
    line = Text.assemble(" ", (look.mark, look.style), f" {len(blocked)} blocked")
    if blockers:
        line.append(f" by {blockers}", "dim")
    return cut(line, width)

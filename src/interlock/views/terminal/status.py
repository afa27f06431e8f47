"""The output of `interlock status`: running tasks and their files, waiting tasks, outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.outcome import State
from interlock.views.forecast import seconds_left
from interlock.views.terminal import footer, safe_text
from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.cells import shown
from interlock.views.terminal.figures import about, clock
from interlock.views.terminal.frame import Why
from interlock.views.terminal.reasons import ending, summarize
from interlock.views.terminal.running_rows import is_running
from interlock.views.terminal.state_styles import STOPPING, STYLES

_ROWS = 20
"""How many waiting tasks, and how many files, are listed; `--json` lists all."""
_RECENT = 10
_WIDE = 10_000
"""A width at which nothing is cut: Rich wraps what is too long."""

_QUEUED = (State.NEEDS_YOU, State.WAITING, State.RETRYING, State.BLOCKED)


def status(
    facts: RunFacts, why: Why, *, resources: Sequence[tuple[str, str]] = ()
) -> RenderableType:
    """The whole status. `resources`: names and use of resources, as text (`CPU`, `34 %`)."""
    running = [task for task in facts.tasks if is_running(task)]
    queued = [task for state in _QUEUED for task in facts.tasks if task.state is state]
    ended = [task for task in facts.tasks if task.state.is_end]
    ended.sort(key=lambda task: -(task.ended_at or task.since))
    parts: list[RenderableType] = [
        _head(facts),
        footer.counts(facts, _WIDE),
        *_part("Running", len(running), _running(running, facts.at)),
        *_part("Queued", len(queued), _queued(queued, why, facts.at)),
        *_part("Active files", 0, _files(running)),
        *_part("Resources", 0, _resources(facts, resources)),
        *_part("Recent outcomes", 0, _outcomes(ended[:_RECENT])),
    ]
    return AsciiFallback(Group(*parts))


def _head(facts: RunFacts) -> Text:
    title = Text.assemble(" ", (safe_text.line(facts.plan) or "interlock", "bold"))
    title.append(f"  run {safe_text.line(facts.run_id)}", "dim")
    title.append(f"  {clock(facts.duration)}")
    if facts.ended_at is not None:
        title.append("  ended", "bold")
    elif not facts.active:
        title.append("  interrupted; resume it with `interlock run --resume`", "bold yellow")
    elif facts.draining:
        title.append("  stopping: running tasks may finish", "bold yellow")
    elif facts.paused:
        title.append("  paused; resume it with `interlock resume`", "bold yellow")
    elif left := seconds_left(facts):
        title.append(f"  {about(left)} left", "dim")
    return title


def _part(title: str, count: int, rows: Iterator[tuple[Text, ...]]) -> Iterator[RenderableType]:
    listed = list(rows)
    if not listed:
        return
    yield Text()
    said = f" {len(listed)} of {count}" if count > len(listed) else f" {count}" if count else ""
    yield Text.assemble(" ", (title, "bold"), (said, "dim"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in listed[0]:
        grid.add_column(overflow="fold")
    for row in listed:
        grid.add_row(*row)
    yield Padding(grid, (0, 0, 0, 1))


def _running(tasks: list[TaskFacts], now: float) -> Iterator[tuple[Text, ...]]:
    for task in tasks:
        look = STOPPING if task.stopping else STYLES[task.state]
        began = task.started_at if task.started_at is not None else task.since
        attempt = f"attempt {task.attempt} of {task.attempts}" if task.attempt > 1 else ""
        yield (
            _name(task, look.mark, look.style),
            shown(task.agent, "dim"),
            Text(clock(now - began), justify="right"),
            Text(attempt or (look.word if task.stopping else ""), "yellow"),
            shown(", ".join(task.claims) or "no claims", "" if task.claims else "dim"),
        )


def _queued(tasks: list[TaskFacts], why: Why, now: float) -> Iterator[tuple[Text, ...]]:
    for task in tasks[:_ROWS]:
        look = STYLES[task.state]
        reason = task.question if task.state is State.NEEDS_YOU else summarize(why(task.id))
        yield (
            _name(task, look.mark, look.style),
            shown(task.agent, "dim"),
            Text(clock(now - task.since), justify="right"),
            shown(reason, "bold" if task.state is State.NEEDS_YOU else "dim"),
        )


def _files(running: list[TaskFacts]) -> Iterator[tuple[Text, ...]]:
    by: dict[str, list[str]] = {}
    for task in running:
        for claim in task.claims:
            if not claim.startswith("uses "):
                by.setdefault(claim, []).append(task.id)
    for claim, ids in list(by.items())[:_ROWS]:
        mode, _, pattern = claim.partition(" ")
        yield shown(mode, "dim"), shown(pattern), shown(", ".join(ids), "cyan")


def _resources(facts: RunFacts, resources: Sequence[tuple[str, str]]) -> Iterator[tuple[Text, ...]]:
    if facts.slots:
        yield Text("slots"), Text(f"{facts.progress.running} of {facts.slots} in use")
    for name, use in resources:
        yield shown(name), shown(use)


def _outcomes(ended: list[TaskFacts]) -> Iterator[tuple[Text, ...]]:
    for task in ended:
        look = STYLES[task.state]
        yield (
            _name(task, look.mark, look.style),
            shown(task.agent, "dim"),
            Text(clock(task.duration) if task.attempt else "", justify="right"),
            Text(look.word, look.style),
            shown(ending(task)[:200], "dim"),
        )


def _name(task: TaskFacts, mark: str, style: str) -> Text:
    return Text.assemble((mark, style), " ", safe_text.line(task.id))

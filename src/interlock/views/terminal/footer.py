"""The last lines of the live view: how far the run is, in counts that add up, and in time."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from interlock.journal.state.run_facts import RunFacts
from interlock.model.duration import span
from interlock.views.terminal import figures
from interlock.views.terminal.cells import cut, joined, spread
from interlock.views.terminal.state_styles import STOPPING, STYLES

Hints = tuple[str, ...]
"""What Ctrl-C does, from the longest way to say it to the shortest."""
DRAINS: Hints = ("Ctrl-C gives what runs its grace, then stops", "Ctrl-C drains")
STOPS: Hints = ("Ctrl-C again stops what runs at once", "Ctrl-C stops")
LEAVES: Hints = ("Ctrl-C ends the watching, not the run", "Ctrl-C leaves")

_BAR = (
    (("succeeded",), "green"),
    (("failed", "timed_out", "conflicted"), "red"),
    (("cancelled", "skipped"), "yellow"),
    (("running", "needs_you"), "cyan"),
)


def bar(facts: RunFacts, width: int) -> Text:
    """All tasks as one line: what has ended, and how; what runs; what is to come."""
    total = facts.progress.total
    drawn, reached, at = Text(" "), 0, 0
    room = max(0, width - 2)
    for states, style in _BAR:
        reached += sum(getattr(facts.progress, state) for state in states)
        until = room * reached // total if total else 0
        drawn.append("━" * (until - at), style)
        at = until
    return cut(drawn.append("─" * (room - at), "dim"), width)


def counts(facts: RunFacts, width: int) -> Text:
    """How many tasks are in which state: in words, with marks, in three groups, as it fits."""
    progress = facts.progress
    to_come = progress.total - progress.ended - progress.running
    groups = f"{progress.ended} ended, {progress.running} running, {to_come} to come"
    least = Text(f" {progress.ended} of {progress.total} ended")
    for parts in (list(_words(facts)), list(_marks(facts)), [Text(groups)]):
        line = Text.assemble(" ", joined(parts))
        if line.cell_len <= width:
            return line
    return cut(least, width)


def _words(facts: RunFacts) -> Iterator[Text]:
    yield Text(figures.plural(facts.progress.total, "task"), "bold")
    for state, look in STYLES.items():
        count = getattr(facts.progress, state)
        if count:
            yield Text.assemble((look.mark, look.style), f" {count} {look.word}")
    if facts.progress.zombies:
        # Attempts, not tasks: they are no part of the sum.
        yield Text(f"({facts.progress.zombies} {STOPPING.word})", STOPPING.style)


def _marks(facts: RunFacts) -> Iterator[Text]:
    sums: dict[str, int] = {}
    for state, look in STYLES.items():
        sums[look.mark] = sums.get(look.mark, 0) + getattr(facts.progress, state)
    styles = {look.mark: look.style for look in STYLES.values()}
    for mark, count in sums.items():
        if count:
            yield Text.assemble((mark, styles[mark]), f" {count}")
    yield Text(f"of {facts.progress.total}", "bold")


def times(facts: RunFacts, left: float | None, width: int, hints: Hints | None = None) -> Text:
    """Elapsed, how much longer, saved, spent; and what Ctrl-C does."""
    line = Text.assemble(" ", (figures.clock(facts.duration), "bold"))
    for part in _figures(facts, left):
        if line.cell_len + 2 + part.cell_len <= width:
            line.append("  ").append_text(part)
    for hint in _hints(facts) if hints is None else hints:
        if line.cell_len + 3 + len(hint) <= width:
            return spread(line, Text(f"{hint} ", "dim"), width)
    return cut(line, width)


def _figures(facts: RunFacts, left: float | None) -> Iterator[Text]:
    if left and facts.ended_at is None:
        yield Text(f"{figures.about(left)} left")
    if facts.saved >= 10:
        yield Text(f"{span(facts.saved)} saved", "green")
    if facts.cost:
        yield Text(figures.money(facts.cost))
    tokens = sum(task.tokens for task in facts.tasks)
    if tokens:
        yield Text(figures.tokens(tokens))


def _hints(facts: RunFacts) -> Hints:
    if facts.ended_at is not None or not facts.active:
        return ()
    return STOPS if facts.draining else DRAINS

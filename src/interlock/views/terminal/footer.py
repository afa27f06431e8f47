"""The footer of the live view: a bar, counts that add up, and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from interlock.journal.state.run_facts import RunFacts
from interlock.model.duration import span
from interlock.plan.records import GRACE
from interlock.views.terminal import figures
from interlock.views.terminal.cells import cut, joined, spread
from interlock.views.terminal.state_styles import STOPPING, STYLES

Hints = tuple[str, ...]
"""What Ctrl-C does, from the longest wording to the shortest."""
STOPS: Hints = ("Ctrl-C again: stop at once", "Ctrl-C: stop now")
LEAVES: Hints = ("Ctrl-C: stop watching; the run continues", "Ctrl-C: stop watching")

_BAR = (
    (("succeeded",), "green"),
    (("failed", "timed_out", "conflicted"), "red"),
    (("cancelled", "skipped"), "yellow"),
    (("running", "needs_you"), "cyan"),
)


def bar(facts: RunFacts, width: int) -> Text:
    """All tasks as one line: ended ones by outcome, running ones, the rest."""
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
    """How many tasks are in each state: in words, as marks or in three groups, as space allows."""
    progress = facts.progress
    to_come = progress.total - progress.ended - progress.running
    groups = f"{progress.ended} ended, {progress.running} running, {to_come} to go"
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
        # These are attempts, not tasks: they are not part of the sum.
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
    """Elapsed, remaining and saved time, cost, and what Ctrl-C does."""
    line = Text.assemble(" ", (figures.clock(facts.duration), "bold"))
    for part in _figures(facts, left):
        if line.cell_len + 2 + part.cell_len <= width:
            line.append("  ").append_text(part)
    for hint in RUN_HINTS(facts) if hints is None else hints:
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


def run_hints(grace: float) -> Callable[[RunFacts], Hints]:
    """What Ctrl-C does to a run whose attempts have `grace` seconds to finish."""
    drains: Hints = (
        f"Ctrl-C: let running tasks finish (up to {span(grace)}), then stop",
        "Ctrl-C: finish, then stop",
        "Ctrl-C stops",
    )

    def hints(facts: RunFacts) -> Hints:
        if facts.ended_at is not None or not facts.active:
            return ()
        return STOPS if facts.draining else drains

    return hints


RUN_HINTS = run_hints(GRACE)
"""What Ctrl-C does to a run with the default grace."""

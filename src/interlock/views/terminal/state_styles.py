"""How each state looks: a mark of one cell, a colour, a word. The same in every view.

Only the sixteen colours that a terminal's own theme defines are used, and nothing is said by
colour alone.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.text import Text

from interlock.model.outcome import State


class StateStyle(NamedTuple):
    """How a state is drawn."""

    mark: str
    style: str
    word: str


STYLES = {
    State.RUNNING: StateStyle("●", "cyan", "running"),
    State.NEEDS_YOU: StateStyle("?", "bold magenta", "needs you"),
    State.WAITING: StateStyle("○", "yellow", "waiting"),
    State.RETRYING: StateStyle("↻", "yellow", "retrying"),
    State.BLOCKED: StateStyle("·", "dim", "blocked"),
    State.SUCCEEDED: StateStyle("✓", "green", "succeeded"),
    State.FAILED: StateStyle("✗", "red", "failed"),
    State.TIMED_OUT: StateStyle("✗", "red", "timed out"),
    State.CONFLICTED: StateStyle("✗", "red", "conflicted"),
    State.CANCELLED: StateStyle("⊘", "yellow", "cancelled"),
    State.SKIPPED: StateStyle("–", "dim", "skipped"),
}
"""In the order in which counts are given."""

STOPPING = StateStyle("◌", "yellow", "stopping")
"""LineWatcher to stop, or ended, and not gone yet."""
FREE = StateStyle("·", "dim", "free")
"""A lane that nobody is in."""

FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.CONFLICTED})
"""Ends that somebody has to look at."""


def mark(state: State) -> Text:
    """The mark of a state in its colour."""
    look = STYLES[state]
    return Text(look.mark, look.style)

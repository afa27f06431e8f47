"""The appearance of each state: a mark of one cell, a colour, a word. The same in every view.

Only the sixteen colours of the terminal's own theme are used, and no information is given by colour
alone.
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
"""In the order in which counts are shown."""

STOPPING = StateStyle("◌", "yellow", "stopping")
"""It has ended or was told to stop, and has not exited yet."""
FREE = StateStyle("·", "dim", "free")
"""A row without a running task."""

FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.CONFLICTED})
"""Outcomes that a person has to look at."""


def mark(state: State) -> Text:
    """The mark of a state in its colour."""
    style = STYLES[state]
    return Text(style.mark, style.style)

"""How each state looks: a mark of one cell, a colour, a word. The same in every view.

Only the sixteen colours that a terminal's own theme defines are used, and nothing is said by
colour alone.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.text import Text

from interlock.model.outcome import State


class Look(NamedTuple):
    """How a state is drawn."""

    mark: str
    style: str
    word: str


LOOKS = {
    State.RUNNING: Look("●", "cyan", "running"),
    State.NEEDS_YOU: Look("?", "bold magenta", "needs you"),
    State.WAITING: Look("○", "yellow", "waiting"),
    State.RETRYING: Look("↻", "yellow", "retrying"),
    State.BLOCKED: Look("·", "dim", "blocked"),
    State.SUCCEEDED: Look("✓", "green", "succeeded"),
    State.FAILED: Look("✗", "red", "failed"),
    State.TIMED_OUT: Look("✗", "red", "timed out"),
    State.CONFLICTED: Look("✗", "red", "conflicted"),
    State.CANCELLED: Look("⊘", "yellow", "cancelled"),
    State.SKIPPED: Look("–", "dim", "skipped"),
}
"""In the order in which counts are given."""

STOPPING = Look("◌", "yellow", "stopping")
"""Told to stop, or ended, and not gone yet."""
FREE = Look("·", "dim", "free")
"""A lane that nobody is in."""

FAILURES = frozenset({State.FAILED, State.TIMED_OUT, State.CONFLICTED})
"""Ends that somebody has to look at."""


def mark(state: State) -> Text:
    """The mark of a state in its colour."""
    look = LOOKS[state]
    return Text(look.mark, look.style)

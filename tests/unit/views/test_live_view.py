"""The driver of the live view: draws what is new, and leaves the terminal as it was."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from interlock.model.outcome import State
from interlock.model.why import Explanation
from interlock.views.terminal.console import can_be_live
from interlock.views.terminal.live_view import FRAMES, LiveView
from tests.unit.views.runs import NOW, run, task, why

TAKEN, BACK = "\x1b[?1049h", "\x1b[?1049l"
FRAME = "\x1b[?2026h"


class Terminal(io.StringIO):
    """Keeps what is written, each time it is flushed."""

    def isatty(self) -> bool:
        return True


class Watched:
    """A view of facts that the test changes, on a clock that the test moves."""

    def __init__(self, terminal: io.StringIO | None = None, **options: Any) -> None:
        self.terminal = terminal or Terminal()
        self.facts = run(task("a", State.RUNNING), task("b"))
        self.time = 0.0
        console = Console(file=self.terminal, width=80, height=24, force_terminal=True)
        self.frames = 0
        self.slow = 0.0
        self.view = LiveView(
            console, lambda: self.facts, self.why, now=lambda: self.time, **options
        )

    def why(self, task_id: str) -> Explanation:
        """Asked once in each frame, since one task waits."""
        self.frames += 1
        self.time += self.slow
        return why(task_id)

    def looked_at(self, seconds: float = 1.0) -> None:
        self.time += seconds
        self.view.refresh()

    @property
    def written(self) -> str:
        return self.terminal.getvalue()


def test_nothing_is_drawn_when_nothing_has_changed() -> None:
    watched = Watched()
    with watched.view:
        assert watched.frames == 1
        watched.looked_at()
        watched.facts = replace(watched.facts, at=NOW + 0.3)
        watched.looked_at()
        assert watched.frames == 1
        watched.facts = replace(watched.facts, at=NOW + 1)
        watched.looked_at()
        assert watched.frames == 2


def test_at_most_eight_frames_a_second_are_drawn() -> None:
    watched = Watched()
    with watched.view:
        for number in range(1_000):
            watched.facts = replace(watched.facts, last=number)
            watched.looked_at(0.001)
        assert watched.frames <= 1 + FRAMES


def test_drawing_takes_a_small_part_of_the_time_however_long_a_frame_takes() -> None:
    watched = Watched()
    watched.slow = 0.5
    with watched.view:
        for number in range(100):
            watched.facts = replace(watched.facts, last=number)
            watched.looked_at(0.5)
        assert watched.frames * 0.5 <= watched.time / 10 + 0.5


def test_at_the_end_the_terminal_is_as_before_and_the_summary_stays() -> None:
    watched = Watched()
    with watched.view:
        watched.facts = run(task("a", State.SUCCEEDED), ended_at=NOW)
    assert watched.written.startswith(TAKEN)
    before, after = watched.written.split(BACK)
    assert "\x1b[?25l" in before
    assert "\x1b[?25h" in before.rpartition(FRAME)[2]
    assert "succeeded in 1 min" in after
    watched.view.stop()
    assert watched.written.count(BACK) == 1


@pytest.mark.parametrize("wrong", ["facts", "why"])
def test_an_error_in_a_frame_is_raised_with_the_terminal_given_back(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched()
    watched.view.start()

    def fail(*_: object) -> None:
        raise KeyError("nobody knows")

    monkeypatch.setattr(watched.view, f"_{wrong}", fail)
    watched.facts = run(task("b"))
    with pytest.raises(KeyError, match="nobody knows"):
        watched.looked_at()
    assert watched.written.endswith(BACK)
    watched.looked_at()
    watched.view.stop()


def test_an_error_of_the_program_is_not_hidden() -> None:
    watched = Watched()
    with pytest.raises(ValueError, match="mine"), watched.view:
        raise ValueError("mine")
    assert BACK in watched.written


def test_what_is_printed_meanwhile_comes_out_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watched = Watched()
    with watched.view:
        print("a line of an agent")
        print("a warning", file=sys.stderr)
        assert capsys.readouterr() == ("", "")
    assert capsys.readouterr() == ("a line of an agent\n", "a warning\n")
    print("later")
    assert capsys.readouterr().out == "later\n"


def test_a_closed_terminal_does_not_hurt_the_run() -> None:
    class Gone(Terminal):
        def write(self, _: str, /) -> int:
            raise OSError(5, "Input/output error")

    watched = Watched(Gone(), end=lambda _: "")
    with watched.view:
        for second in range(5):
            watched.facts = replace(watched.facts, at=NOW + second)
            watched.looked_at()


def test_a_view_is_live_only_where_somebody_looks() -> None:
    screen = Console(file=Terminal(), _environ={"TERM": "xterm"})
    assert can_be_live(screen, {})
    assert not can_be_live(screen, {"CI": "true"})
    assert not can_be_live(Console(file=Terminal(), _environ={"TERM": "dumb"}), {})
    assert not can_be_live(Console(file=io.StringIO(), _environ={"TERM": "xterm"}), {})


def test_no_color_takes_the_colours_and_nothing_else() -> None:
    console = Console(file=Terminal(), _environ={"TERM": "xterm", "NO_COLOR": "1"})
    assert console.no_color
    assert can_be_live(console, {"NO_COLOR": "1"})

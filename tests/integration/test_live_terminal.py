"""The live view in a real terminal: sizes, resizing, and giving everything back."""

from __future__ import annotations

import os
import signal
import termios

import pytest

from tests.integration.terminal import Terminal


def assert_drawn(lines: list[str], rows: int) -> None:
    assert len(lines) == rows
    assert lines[0].startswith(" release.yaml")
    assert lines[-1].startswith(" 1:0")
    assert any(said in "\n".join(lines) for said in ("of 200", "200 tasks", "to go"))


def assert_given_back(terminal: Terminal) -> None:
    modes = terminal.picture.modes
    assert (modes["1049"], modes["25"], modes["7"]) == (False, True, True)
    assert terminal.settings() == terminal.before


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50), (40, 12)])
def test_a_frame_fills_the_terminal(columns: int, rows: int) -> None:
    with Terminal(columns, rows) as terminal:
        assert_drawn(terminal.see_frame(), rows)
        assert terminal.picture.modes["25"] is False
        assert not terminal.settings()[3] & termios.ECHO


def test_the_view_follows_the_size_of_the_window() -> None:
    with Terminal(80, 24) as terminal:
        terminal.see_frame()
        terminal.told()
        for columns, rows in ((200, 50), (40, 12), (121, 33), (81, 24)):
            terminal.set_size(columns, rows)
            terminal.order("refresh")
            assert_drawn(terminal.see_frame(), rows)


def test_nothing_of_an_older_frame_is_left() -> None:
    with Terminal(80, 24) as terminal:
        terminal.see_frame()
        terminal.order("end")
        terminal.order("refresh")
        lines = [line for line in terminal.see_frame() if line]
        assert [line.split() for line in lines[:3]] == [
            ["release.yaml", "run", "7f3a", "ended"],
            ["Ended", "1"],
            ["✓", "a", "codex", "0:25"],
        ]
        assert lines[-2:] == [" 1 task  ✓ 1 succeeded", " 1:00"]
        assert len(lines) == 6


def test_the_summary_stays_on_the_screen() -> None:
    with Terminal(80, 24) as terminal:
        for order in ("print a_line_of_an_agent", "end", "stop"):
            terminal.order(order)
        terminal.see_all()
        assert_given_back(terminal)
        text = "\n".join(terminal.picture.main)
        assert text.index("a_line_of_an_agent") < text.index("release.yaml  succeeded in 1 min")
        assert terminal.process.returncode == 0


@pytest.mark.parametrize("order", ["fail", "exit"])
def test_however_the_program_ends_the_terminal_is_given_back(order: str) -> None:
    with Terminal(80, 24) as terminal:
        terminal.order(order)
        terminal.see_all()
        assert_given_back(terminal)
        text = "\n".join(terminal.picture.main)
        assert ("ValueError: a bug of the program" in text) == (order == "fail")
        assert terminal.process.returncode == (1 if order == "fail" else 3)


def test_ctrl_c_gives_the_terminal_back() -> None:
    with Terminal(80, 24) as terminal:
        assert terminal.told() == "started"
        terminal.process.send_signal(signal.SIGINT)
        terminal.see_all()
        assert_given_back(terminal)
        assert "KeyboardInterrupt" in "\n".join(terminal.picture.main)


def test_ctrl_z_gives_the_terminal_back_until_the_program_goes_on() -> None:
    with Terminal(80, 24) as terminal:
        assert terminal.told() == "started"
        terminal.see_frame()
        terminal.process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        terminal.see("\x1b[?1049l")
        assert_given_back(terminal)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.see("\x1b[?1049h")
        assert_drawn(terminal.see_frame(), 24)
        terminal.order("stop")
        terminal.see_all()
        assert_given_back(terminal)


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_run() -> None:
    with Terminal(200, 50) as terminal:
        assert terminal.told() == "started"
        # Nobody reads: a hundred frames are far more than a terminal keeps.
        for _ in range(100):
            terminal.order("second")
            assert terminal.told() == "second"
        terminal.order("stop")
        terminal.see("\x1b[?1049l")
        assert_given_back(terminal)


def test_a_window_that_is_closed_does_not_hurt_the_run() -> None:
    with Terminal(80, 24) as terminal:
        assert terminal.told() == "started"
        terminal.hang_up()
        for _ in range(20):
            terminal.order("second")
            assert terminal.told() == "second"
        terminal.order("stop")
        assert terminal.told() == "stopped"


def test_no_color_means_no_colours() -> None:
    with Terminal(80, 24, NO_COLOR="1") as terminal:
        terminal.order("stop")
        terminal.see_all()
        assert "\x1b[36m" not in terminal.unread
        assert "\x1b[32m" not in terminal.unread
    with Terminal(80, 24) as terminal:
        terminal.order("stop")
        terminal.see_all()
        assert "\x1b[36m" in terminal.unread

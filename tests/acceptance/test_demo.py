"""The demo as a user runs it: told in lines, drawn in a terminal, and interrupted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo_job import Span, conflicting, overlaps, tasks

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
COMMAND = [sys.executable, str(DEMO), "--pace", "0.1"]
OUTCOMES = {
    "schema": "succeeded",
    "code": "succeeded",
    "tests": "succeeded",
    "length": "succeeded",
    "mass": "succeeded",
    "heat": "succeeded",
    "german": "succeeded, attempt 2",
    "index": "succeeded",
    "docstrings": "succeeded",
    "compile": "succeeded",
    "check": "failed",
    "package": "skipped",
    "announce": "skipped",
}
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
OTHER_SCREEN, OLD_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


def _environment(**variables: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return {**plain, "PYTHONIOENCODING": "utf-8", "TERM": "xterm", **variables}


def _run(*options: str, **variables: str) -> str:
    done = subprocess.run(
        [*COMMAND, *options],
        env=_environment(COLUMNS="80", **variables),
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert not done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told() -> str:
    return _run()


def _timeline(told: str) -> dict[str, tuple[str, str]]:
    """For each task its outcome and its lane."""
    lines = told[told.index("task        outcome") :].splitlines()
    assert lines[0].startswith("task        outcome")
    start = lines[0].index("0 s")
    lanes = lines[1 : lines.index("")]
    return {line[:12].strip(): (line[12:start].strip(), line[start:]) for line in lanes}


# -- told in lines ----------------------------------------------------------------------------


def test_the_demo_ends_with_the_outcome_of_every_task(told: str) -> None:
    assert {task: outcome for task, (outcome, _) in _timeline(told).items()} == OUTCOMES


def test_the_demo_tells_why_a_task_waits(told: str) -> None:
    assert re.search(r" compile +waits:\n +docstrings holds write src/\*\*/\*\.py\b", told)
    assert re.search(r" mass +waits:\n +no slot is free", told)


def test_the_demo_tells_what_really_failed_and_who_was_skipped_for_it(told: str) -> None:
    assert "check failed: AgentFailed: AssertionError: 203.0 != 212" in told
    assert "So package and announce were skipped; everybody else went on." in told


def test_the_demo_compares_with_one_after_another(told: str) -> None:
    assert re.search(r"15 files by 13 agents in \d+\.\d s; one after another \d+\.\d s", told)


def test_the_demo_draws_no_two_conflicting_tasks_at_once(told: str) -> None:
    lanes = {task: lane for task, (_, lane) in _timeline(told).items()}
    for one, other in conflicting(tasks(1)):
        both = zip(lanes[one], lanes[other], strict=False)
        assert not any(a == b == "█" for a, b in both), (one, other)


def test_the_demo_checks_that_nothing_conflicting_overlapped(told: str) -> None:
    pairs = len(conflicting(tasks(1)))
    assert f"no two that conflict ({pairs} pairs) were at work at once" in told


def test_that_check_would_see_an_overlap() -> None:
    early, late, apart = Span("german", 0, 2), Span("index", 1, 3), Span("index", 2, 3)
    pairs = conflicting(tasks(1))
    assert overlaps(pairs, [late, early]) == [(early, late)]
    assert overlaps(pairs, [early, apart, Span("code", 0, 3)]) == []


def test_without_the_mistake_the_demo_has_no_failure() -> None:
    told = _run("--fix")
    assert {outcome for outcome, _ in _timeline(told).values()} == {
        "succeeded",
        "succeeded, attempt 2",
    }
    assert "17 files by 13 agents" in told


def test_the_demo_without_a_terminal_has_no_colours(told: str) -> None:
    assert "\x1b" not in told


def test_the_demo_can_be_told_in_ascii() -> None:
    assert _run(PYTHONIOENCODING="ascii", PYTHONUTF8="0").isascii()


def test_the_demo_leaves_no_folder_behind(tmp_path: Path) -> None:
    assert "15 files" in _run(TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


# -- drawn in a terminal ----------------------------------------------------------------------


class Terminal:
    """The demo in a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process = process
        self._output = output
        self._bytes = b""
        self.shown = ""

    def read_until(self, text: str) -> None:
        while text not in self.shown:
            assert self._read(), f"ended without {text!r}: {self.shown}"

    def read_all(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self.process.wait()

    def _read(self) -> bool:
        try:
            read = os.read(self._output, 65536)
        except OSError:  # how Linux says that nobody has the other end open any more
            return False
        # A read may end in the middle of a character, or of the end of a line.
        self._bytes += read
        self.shown = self._bytes.decode("utf-8", errors="ignore").replace("\r\n", "\n")
        return bool(read)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def frames(self) -> list[list[str]]:
        """What was drawn, frame by frame, without colours."""
        drawn = self.shown[: self.shown.index(OLD_SCREEN)].split("\x1b[H")[1:]
        return [re.sub(r"\x1b\[[\d?]*\w", "", each).split("\n") for each in drawn]


@contextmanager
def _terminal(columns: int, lines: int, *options: str, **variables: str) -> Iterator[Terminal]:
    ours, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = _environment(**variables)
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)

    with subprocess.Popen(
        [*COMMAND, *options],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(screen)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            os.close(ours)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 50), (50, 22), (40, 10)])
def test_every_frame_fits_into_the_terminal(columns: int, lines: int) -> None:
    with _terminal(columns, lines) as terminal:
        assert terminal.read_all() == 0
    frames = terminal.frames()
    assert frames
    for frame in frames:
        assert len(frame) <= lines
        assert max(map(len, frame)) <= columns
    after = terminal.shown[terminal.shown.index(OLD_SCREEN) :]
    assert max(len(re.sub(r"\x1b\[[\d?]*\w", "", line)) for line in after.splitlines()) <= columns
    assert "were at work at once." in " ".join(after.split())


def test_the_picture_shows_what_runs_and_why_others_wait() -> None:
    with _terminal(100, 40, "--pace", "0.3") as terminal:
        assert terminal.read_all() == 0
    frames = ["\n".join(frame) for frame in terminal.frames()]
    assert any(re.search(r"^code +writes src/units/heat\.py", each, re.M) for each in frames)
    assert any(re.search(r"^compile +docstrings holds write src/", each, re.M) for each in frames)


def test_the_cursor_and_the_old_screen_come_back() -> None:
    with _terminal(80, 24) as terminal:
        assert terminal.read_all() == 0
    _assert_restored(terminal.shown)


def test_an_interrupted_demo_gives_the_terminal_back(tmp_path: Path) -> None:
    with _terminal(80, 24, "--pace", "100", TMPDIR=str(tmp_path)) as terminal:
        terminal.read_until("1 running")
        terminal.interrupt()
        terminal.read_until("Stopping")
        terminal.interrupt()
        assert terminal.read_all() == 130
    _assert_restored(terminal.shown)
    assert "Interrupted" in terminal.shown
    assert "Traceback" not in terminal.shown
    assert list(tmp_path.iterdir()) == []


def _assert_restored(shown: str) -> None:
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert shown.rindex(OLD_SCREEN) > shown.rindex(OTHER_SCREEN)


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_it_plain_gets_lines(variable: dict[str, str]) -> None:
    with _terminal(80, 24, **variable) as terminal:
        assert terminal.read_all() == 0
    assert "\x1b" not in terminal.shown
    assert "schema      starts" in terminal.shown

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

from demo import JOB, Span, claims_by_task, overlaps

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
COMMAND = [sys.executable, str(DEMO), "--pace", "0.1"]
OUTCOMES = {
    "schema": "succeeded",
    "code": "succeeded",
    "tests": "succeeded",
    "page-length": "succeeded",
    "page-mass": "succeeded",
    "page-heat": "succeeded",
    "german": "succeeded, attempt 2",
    "index": "succeeded",
    "docstrings": "succeeded",
    "compile": "succeeded",
    "check": "failed",
    "package": "skipped",
    "announce": "skipped",
}
SHOW, OLD_SCREEN = "\x1b[?25h", "\x1b[?1049l"
HIDE, OTHER_SCREEN = "\x1b[?25l", "\x1b[?1049h"


def _environment(**variables: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
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


# -- told in lines ----------------------------------------------------------------------------


def test_the_demo_ends_with_the_outcome_of_every_task(told: str) -> None:
    found = dict(re.findall(r"^ [✓✗–] (\S+) +(\w+(?:, attempt \d)?) ", told, re.M))
    assert {name: found.get(name) for name in OUTCOMES} == OUTCOMES


def test_the_demo_tells_what_really_failed_and_who_was_skipped_for_it(told: str) -> None:
    assert re.search(r"check +failed after .*: FAILED \(failures=1\)", told)
    assert re.search(r"package +skipped: check did not succeed", told)


def test_the_demo_compares_with_one_after_another(told: str) -> None:
    assert re.search(r"saved, \d+\.\d × as fast as one after another", told)
    assert "15 new files" in told


def test_the_demo_checks_that_nothing_conflicting_overlapped(told: str) -> None:
    assert re.search(r"no two that conflict \([1-9]\d* pairs\) were at work at once", told)


def test_that_check_would_see_an_overlap() -> None:
    claims = claims_by_task(JOB)
    early, late, apart = Span("german", 0, 2), Span("index", 1, 3), Span("index", 2, 3)
    assert overlaps([late, early], claims).found == [(late, early)]
    assert overlaps([early, apart, Span("code", 0, 3)], claims).found == []


def test_the_demo_without_a_terminal_has_no_colours(told: str) -> None:
    assert "\x1b" not in told


def test_the_demo_leaves_no_folder_behind(tmp_path: Path) -> None:
    assert "15 new files" in _run(TMPDIR=str(tmp_path))
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
        """Ctrl-C: all who have the terminal hear of it."""
        os.killpg(self.process.pid, signal.SIGINT)


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


def test_the_demo_is_drawn_in_a_terminal_which_is_given_back() -> None:
    with _terminal(80, 24) as terminal:
        assert terminal.read_all() == 0
    assert "interlock why TASK" in terminal.shown  # the live view, which lines do not have
    _assert_restored(terminal.shown)
    assert "were at work at once." in " ".join(terminal.shown.split())


def test_an_interrupted_demo_gives_the_terminal_back(tmp_path: Path) -> None:
    with _terminal(80, 24, "--pace", "100", TMPDIR=str(tmp_path)) as terminal:
        terminal.read_until("1 running")
        terminal.interrupt()
        terminal.read_until("Ctrl-C again: stop")
        terminal.interrupt()
        assert terminal.read_all() == 130
    _assert_restored(terminal.shown)
    assert "interlock run --resume" in terminal.shown
    assert "Traceback" not in terminal.shown
    assert list(tmp_path.iterdir()) == []


def _assert_restored(shown: str) -> None:
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert shown.rindex(OLD_SCREEN) > shown.rindex(OTHER_SCREEN)


def test_a_terminal_that_cannot_be_drawn_on_gets_lines() -> None:
    with _terminal(80, 24, TERM="dumb") as terminal:
        assert terminal.read_all() == 0
    assert "\x1b" not in terminal.shown
    assert re.search(r"schema +started with coder", terminal.shown)

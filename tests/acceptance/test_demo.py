"""The demo as a user runs it, without a terminal: it tells its story in lines and ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
OUTCOMES = {
    "schema": "succeeded",
    "api": "succeeded",
    "login": "succeeded, attempt 2",
    "rename": "succeeded",
    "review": "succeeded",
    "tests": "succeeded",
    "typos": "succeeded",
    "guide": "succeeded",
    "theme": "succeeded",
    "migrate": "timed_out",
    "seed": "succeeded",
    "icons": "failed",
    "publish": "skipped",
}


def _run(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(DEMO)],
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
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
    lines = told[told.index("task     outcome") :].splitlines()[1:]
    lanes = lines[: lines.index("")]
    return {line[:9].strip(): (line[9:30].strip(), line[30:]) for line in lanes}


def test_the_demo_ends_with_the_outcome_of_every_task(told: str) -> None:
    assert {task: outcome for task, (outcome, _) in _timeline(told).items()} == OUTCOMES


def test_the_demo_shows_a_task_that_waits_until_a_zombie_is_gone(told: str) -> None:
    lanes = {task: lane for task, (_, lane) in _timeline(told).items()}
    assert lanes["seed"].index("█") == lanes["migrate"].rindex("▒") + 1
    assert "migrate has db:staging since 2 s" in told


def test_the_demo_never_shows_two_conflicting_tasks_at_once(told: str) -> None:
    lanes = {task: lane for task, (_, lane) in _timeline(told).items()}
    for one, other in (("rename", "login"), ("rename", "tests"), ("tests", "api")):
        both = zip(lanes[one], lanes[other], strict=False)
        assert not any(a == b == "█" for a, b in both), (one, other)


def test_the_demo_tells_why_a_task_waits(told: str) -> None:
    assert re.search(r"waiting +guide +typos has docs/\*\*/\*\.md since 0 s", told)
    assert re.search(r"skipped +publish +because of icons", told)


def test_the_demo_without_a_terminal_has_no_colours(told: str) -> None:
    assert "\x1b" not in told


def test_the_demo_can_be_told_in_ascii() -> None:
    assert _run(PYTHONIOENCODING="ascii", PYTHONUTF8="0").isascii()

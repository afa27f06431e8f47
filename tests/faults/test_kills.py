"""Real kills: nothing acknowledged is lost, nothing that succeeded runs again.

A few dozen of them; `make kill-test` does a thousand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.kill_plants import PLANTS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")


def _kill(*options: str) -> subprocess.CompletedProcess[str]:
    # In a process of its own, which has no threads: each life is a fork of it.
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_driver", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_coordinator_that_is_killed_over_and_over_loses_nothing() -> None:
    done = _kill("--kills=40", "--seed=7", "--most=20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, nothing done twice" in done.stdout


@pytest.mark.parametrize("plant", PLANTS)
def test_the_judge_of_kills_finds_a_planted_bug(plant: str) -> None:
    done = _kill(f"--plant={plant}", "--kills=300", "--seed=7", "--most=60")
    assert done.returncode == 1, f"{plant} was not found: {done.stdout}{done.stderr}"
    assert "the facts:" in done.stdout

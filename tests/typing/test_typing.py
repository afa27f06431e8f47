"""The types of the library are part of its contract, and checked like the rest of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_right_uses_have_their_types_and_wrong_uses_are_errors(tmp_path: Path) -> None:
    files = [str(HERE / name) for name in ("right.py", "wrong.py")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *files],
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr

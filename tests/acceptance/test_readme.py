"""What the README shows is what happens: its code runs and prints just what it says."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from interlock.testing.planted import BUGS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_code_prints_what_the_readme_says() -> None:
    names: dict[str, Any] = {}
    ran = 0
    for (language, code), (_, expected) in itertools.pairwise(BLOCKS):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)
        assert printed.getvalue() == expected
        ran += 1
    assert ran == README.count("```python") > 0


def test_the_timeline_is_that_of_the_demo() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(ROOT / "examples" / "demo.py")],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    timeline = next(text for language, text in BLOCKS if language == "text")
    assert timeline in done.stdout


def test_every_file_that_is_linked_exists() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).is_file(), target


def test_the_number_of_planted_bugs_is_true() -> None:
    assert f"{len(BUGS)} bugs planted" in README


def test_the_readme_fits_into_one_sitting() -> None:
    assert len(README.splitlines()) <= 130

"""What the README shows is what happens: its code runs and prints just what it says."""

from __future__ import annotations

import re
from pathlib import Path

from interlock.testing.planted import BUGS
from tests.acceptance import documents
from tests.acceptance.test_demo import OUTCOMES

README = documents.read("README.md")


def test_the_code_prints_what_the_readme_says(tmp_path: Path) -> None:
    assert documents.check("README.md", tmp_path) == README.count("```python") > 0


def test_the_outcomes_in_the_timeline_are_those_of_the_demo() -> None:
    timeline = README[README.index("task        outcome") :].partition("```")[0]
    shown = re.findall(r"^(\w+) +([a-z]+(?:, attempt \d)?)", timeline, re.MULTILINE)[1:]
    assert dict(shown) == OUTCOMES


def test_every_file_that_is_linked_exists() -> None:
    assert documents.missing_links("README.md") == []


def test_the_number_of_planted_bugs_is_true() -> None:
    assert f"{len(BUGS)} bugs planted" in README


def test_the_readme_fits_into_one_sitting() -> None:
    assert len(README.splitlines()) <= 130

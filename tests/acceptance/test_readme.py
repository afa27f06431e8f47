"""What the README shows is what happens: its code runs and prints just what it says."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.runtime.project import ProjectAgents, tasks_of
from interlock.views.cli.plan_conflicts import find_conflicts
from tests.acceptance import documents
from tests.simulation.kernel.planted import BUGS

README = documents.read("README.md")


def test_the_code_prints_what_the_readme_says(tmp_path: Path) -> None:
    assert documents.check("README.md", tmp_path) == README.count("```python") > 0


def test_the_plan_of_the_readme_is_a_plan(tmp_path: Path) -> None:
    plan = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "interlock.yaml").write_text('agents: {codex: {command: [codex, "{prompt}"]}}')
    (tmp_path / "plan.yaml").write_text(plan[0])
    project = load_project(tmp_path / "interlock.yaml")
    tasks = tasks_of(load_plan(tmp_path / "plan.yaml", project), ProjectAgents(project))
    assert {(each.one, each.other) for each in find_conflicts(tasks, {})} == {("api", "rename")}
    assert next(each for each in tasks if each.id == "api").after == ("schema",)


def test_the_picture_of_the_readme_shows_a_run_and_calls_nobody() -> None:
    picture = documents.read("docs/run.svg")
    shown = unescape(re.sub(r"<[^>]+>", "", picture))
    assert "13\xa0tasks" in shown
    assert not re.findall(r"(?:href|url|src)\W+https?:", picture)


def test_every_file_that_is_linked_exists() -> None:
    assert documents.missing_links("README.md") == []


def test_the_number_of_planted_bugs_is_true() -> None:
    assert f"{len(BUGS)} bugs planted" in README


def test_the_readme_fits_into_one_sitting() -> None:
    assert len(README.splitlines()) <= 130

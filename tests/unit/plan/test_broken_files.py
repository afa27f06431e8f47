"""Broken projects and plans: every message, as users see it.

The cases are in `broken_projects.txt` and `broken_plans.txt`: a title, the file, and after `>>>`
all that is said about it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from interlock.errors import PlanError, UsageError
from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from tests.unit.plan import files


class Case(NamedTuple):
    title: str
    file: str
    said: str


def cases(name: str) -> list[Case]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    found = []
    for part in text.split("=== ")[1:]:
        title, _, rest = part.partition("\n")
        file, _, said = rest.partition(">>>\n")
        found.append(Case(title, file, said.strip("\n")))
    return found


PROJECTS = cases("broken_projects.txt")
PLANS = cases("broken_plans.txt")


def titled(case: object) -> str:
    return case.title.replace(" ", "-") if isinstance(case, Case) else ""


@pytest.mark.parametrize("case", PROJECTS, ids=titled)
def test_a_broken_project_is_refused_with_all_that_is_wrong(case: Case, workspace: Path) -> None:
    Path("broken.yaml").write_text(case.file, encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        load_project(Path("broken.yaml"))
    assert str(caught.value) == case.said


@pytest.mark.parametrize("case", PLANS, ids=titled)
def test_a_broken_plan_is_refused_with_all_that_is_wrong(case: Case, workspace: Path) -> None:
    project = files.project()
    Path("plan.yaml").write_text(case.file, encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        load_plan(Path("plan.yaml"), project)
    assert str(caught.value) == case.said


def test_there_are_more_than_forty_of_them() -> None:
    assert len(PLANS) > 40
    assert len(PROJECTS) > 20


def test_a_problem_is_a_record_with_its_place(workspace: Path) -> None:
    with pytest.raises(UsageError) as caught:
        files.plan("tasks:\n  api: {promt: a, prompt: b}\n")
    error = caught.value
    assert isinstance(error, PlanError)
    [problem] = error.problems
    assert (problem.file, problem.line, problem.column) == ("plan.yaml", 2, 9)
    assert problem.field == "tasks.api.promt"
    assert problem.suggestion == "prompt"
    assert problem.text == "a task has no key 'promt'"


def test_no_message_repeats_a_secret(workspace: Path) -> None:
    secret = "sk-" + "a1b2" * 8
    text = (
        f"tasks:\n  api: {{agent: {secret}, prompt: {secret}, {secret}: 1, writes: ../{secret}}}\n"
    )
    with pytest.raises(PlanError) as caught:
        files.plan(text)
    assert len(caught.value.problems) >= 3
    assert secret not in str(caught.value)
    assert secret not in repr(caught.value.problems)


def test_of_very_many_problems_the_first_hundred_are_printed(workspace: Path) -> None:
    lines = "".join(f"  t{number}: {{prompt: x, attempts: 0}}\n" for number in range(300))
    with pytest.raises(PlanError) as caught:
        files.plan(f"tasks:\n{lines}")
    assert len(caught.value.problems) == 300
    assert str(caught.value).splitlines()[-1] == "and 200 more problems"

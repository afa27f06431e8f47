"""A small file cannot unfold to more than a machine has room for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlock.errors import PlanError
from interlock.plan.plan_file import load_plan
from tests.unit.plan.files import plan, project

pytestmark = pytest.mark.usefixtures("workspace")

BIG = "x" * 100_000


def refused(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        plan(text)
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.parametrize(
    "task",
    [
        "{for_each: [" + ",".join(map(str, range(1_000))) + "], prompt: '{{v}}', writes: 'a'}",
        "{prompt: '" + "{{v}}" * 1_000 + "', writes: a}",
        "{prompt: x, writes: ['" + "{{v}}" * 1_000 + "']}",
        "{prompt_file: prompt.md, writes: a}",
    ],
)
def test_the_text_that_variables_are_filled_into_is_bounded(task: str) -> None:
    Path("prompt.md").write_text("{{v}}" * 1_000)
    said = refused(f"variables: {{v: '{BIG}'}}\ntasks:\n  a: {task}\n")
    assert said.startswith("plan.yaml:3:")
    assert "here the tasks expand to more than 67,108,864 characters of text" in said


def test_the_number_of_tasks_is_bounded() -> None:
    items = ",".join("0" for _ in range(50_001))
    assert "more than 50,000 tasks" in refused(f"tasks:\n  a: {{for_each: [{items}], prompt: x}}\n")


def test_the_number_of_dependencies_is_bounded() -> None:
    items = ",".join(map(str, range(1_001)))
    said = refused(
        f"variables: {{l: [{items}]}}\ntasks:\n"
        "  a: {for_each: l, prompt: x, writes: 'a{{item}}'}\n"
        "  b: {for_each: l, prompt: x, writes: 'b{{item}}', after: a}\n"
    )
    assert "here the tasks expand to more than 1,000,000 dependencies" in said
    assert said.startswith("plan.yaml:4:")


def test_a_plan_is_a_file_and_not_a_pipe_that_never_ends() -> None:
    os.mkfifo("pipe.yaml")
    os.symlink("/dev/zero", "zero.yaml")
    for name in ("pipe.yaml", "zero.yaml"):
        with pytest.raises(PlanError, match="it is not a regular file"):
            load_plan(name, project())


def test_the_id_of_a_question_is_no_id_for_a_task() -> None:
    said = refused(
        "tasks:\n  - {id: q, prompt: x, ask: 'ok?', writes: x}\n"
        "  - {id: 'q?', prompt: x, writes: y}\n"
    )
    assert said.startswith("plan.yaml:3:10: tasks.q?: this is the id of the question that 'q' asks")

"""`check` and `graph`; and plans that are wrong, of which nothing is started."""

from __future__ import annotations

import pytest

from tests.acceptance.command_line import Folder, folder

__all__ = ["folder"]

PLAN = """\
tasks:
  schema: {prompt: echo a, writes: src/schema/, priority: high, attempts: 2, timeout: 5m}
  api: {prompt: "echo {{schema.output}}", writes: src/**}
  docs: {prompt: echo b, writes: docs/}
  lint: {prompt: echo c, writes: src/api.py}
"""


def test_check_says_who_takes_turns(folder: Folder) -> None:
    folder.write("plan.yaml", PLAN)
    said = folder.told("check", "plan.yaml")
    about = "writes src/** and writes src/api.py both match src/api.py"
    assert said.splitlines() == [
        f"api and lint take turns: {about}",
        "plan.yaml is valid: 4 tasks, 1 pair takes turns.",
    ]
    facts = folder.facts("check", "plan.yaml")
    assert list(facts) == ["plan", "tasks", "conflicts", "warnings"]
    assert facts["conflicts"] == [{"one": "api", "other": "lint", "about": about}]
    assert facts["tasks"][0] == {
        "id": "schema",
        "agent": "sh",
        "prompt": "echo a",
        "claims": ["writes src/schema/"],
        "after": [],
        "priority": 10,
        "timeout": 300.0,
        "attempts": 2,
    }
    assert facts["tasks"][1]["after"] == ["schema"]
    assert not (folder.path / ".interlock").exists()


def test_check_compares_two_patterns(folder: Folder) -> None:
    said = folder.told("check", "src/**/*.py", "src/api/*")
    assert said.startswith("src/**/*.py and src/api/* conflict: both match src/api/")
    facts = folder.facts("check", "docs/", "src/*.md")
    assert facts == {"patterns": ["docs/", "src/*.md"], "conflict": False, "witness": None}
    assert "one plan file, or two patterns" in folder.refused("check", "a", "b", "c")
    assert "../x" in folder.refused("check", "../x", "a")


def test_a_graph_comes_in_three_shapes_and_as_facts(folder: Folder) -> None:
    folder.write("plan.yaml", PLAN)
    tree = folder.told("graph", "plan.yaml")
    assert tree.splitlines()[0].strip().startswith("schema")
    assert "api" in tree.splitlines()[1]
    dot = folder.told("graph", "plan.yaml", "--as", "dot")
    assert dot.startswith('digraph "plan" {')
    assert '"schema" -> "api"' in dot
    mermaid = folder.told("graph", "plan.yaml", "--as", "mermaid")
    assert mermaid.startswith("flowchart")
    assert "-->" in mermaid
    facts = folder.facts("graph", "plan.yaml")
    assert [(task["id"], task["after"]) for task in facts["tasks"]] == [
        ("schema", []),
        ("api", ["schema"]),
        ("docs", []),
        ("lint", []),
    ]
    assert "svg" in folder.refused("graph", "plan.yaml", "--as", "svg")


BROKEN = {
    "a tab": ("tasks:\n\ta: {prompt: x}\n", "plan.yaml:2:1"),
    "unknown keys": ("tasks: {a: {promt: x, wirtes: y}}\n", "did you mean 'prompt'?"),
    "a cycle": ("tasks: {a: {prompt: x, after: b}, b: {prompt: y, after: a}}\n", "plan.yaml:1:"),
    "a wrong type": ("tasks: {a: {prompt: x, attempts: many}}\n", "tasks.a.attempts"),
    "an unknown agent": ("tasks: {a: {prompt: x, agent: shh}}\n", "did you mean 'sh'?"),
    "an unknown task": ("tasks: {a: {prompt: x, after: [b]}}\n", "there is no task 'b'"),
    "an impossible claim": ("tasks: {a: {prompt: x, uses: gpu=3}}\n", "gpu"),
    "a path outside": ("tasks: {a: {prompt: x, writes: ../x}}\n", "tasks.a.writes"),
    "an unset variable": ("tasks: {a: {prompt: 'x {{who}}'}}\n", "who"),
    "no tasks": ("name: x\n", "tasks"),
    "nothing": ("", "plan.yaml"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plan_ends_with_2_names_the_place_and_starts_nothing(
    name: str, folder: Folder
) -> None:
    text, place = BROKEN[name]
    folder.write("plan.yaml", text.replace("prompt: x", "prompt: touch started"))
    said = folder.refused("run", "plan.yaml")
    assert "plan.yaml" in said
    assert place in said
    assert not (folder.path / ".interlock").exists()
    assert not (folder.path / "started").exists()


def test_every_command_that_reads_a_plan_says_all_that_is_wrong_with_it(folder: Folder) -> None:
    folder.write("plan.yaml", "tasks:\n  a: {promt: x}\n  b: {prompt: x, after: c}\n")
    for words in (["check"], ["graph"], ["run", "--dry-run"]):
        said = folder.refused(*words, "plan.yaml")
        assert "plan.yaml:2:7: tasks.a.promt" in said
        assert "plan.yaml:3:25: tasks.b.after" in said
    folder.write("interlock.yaml", "agent: {}\n")
    said = folder.refused("run", "plan.yaml")
    assert "interlock.yaml:1:1" in said
    assert "did you mean 'agents'?" in said


def test_bytes_that_are_no_text_and_plans_that_are_not_there(folder: Folder) -> None:
    (folder.path / "plan.yaml").write_bytes(b"tasks: {a: {prompt: \xff\xfe}}\n")
    assert "UTF-8" in folder.refused("check", "plan.yaml")
    assert "missing.yaml" in folder.refused("check", "missing.yaml")

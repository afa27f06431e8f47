"""The files that `init` writes are read by the same code as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.views.cli import init_files as first_files
from interlock.views.cli.init_files import (
    CodingAgent,
    installed_agents,
    plan_file_text,
    project_file_text,
)

KNOWN = first_files._KNOWN


@pytest.mark.parametrize(
    "found",
    [(), *((each,) for each in KNOWN), KNOWN],
    ids=lambda found: str(found).replace("CodingAgent(", "Found("),
)
def test_both_files_are_valid_whatever_was_found(
    found: tuple[CodingAgent, ...], tmp_path: Path
) -> None:
    (tmp_path / "interlock.yaml").write_text(project_file_text(tmp_path, found))
    (tmp_path / "plan.yaml").write_text(plan_file_text(found))
    project = load_project(tmp_path / "interlock.yaml")
    plan = load_plan(tmp_path / "plan.yaml", project)
    assert (*project.warnings, *plan.warnings) == ()
    for name, argv in found:
        command = project.agents[name].command
        assert command is not None
        assert command.argv == argv
        assert command.takes_prompt
    assert [task.id for task in plan.tasks] == ["outline", "changelog", "guide"]
    assert plan.tasks[2].after == ("outline",)
    assert {task.agent for task in plan.tasks} == {found[0].name if found else "hello"}


def test_every_line_that_is_commented_out_is_valid_too(tmp_path: Path) -> None:
    text = project_file_text(tmp_path, ())
    shown = [line for line in text.splitlines() if line.startswith("# ") and ":" in line]
    settings = [line.removeprefix("# ") for line in shown if not line.endswith(".")]
    kept = [line for line in settings if line.split(":")[0].isidentifier()]
    assert {line.split(":")[0] for line in kept} == {"protected", "capacity", "limits", "secrets"}
    for line in kept:
        if not line.startswith("limits"):
            (tmp_path / "interlock.yaml").write_text(f"{text}\n{line}\n")
            load_project(tmp_path / "interlock.yaml")


def test_the_env_file_is_named_where_there_is_one(tmp_path: Path) -> None:
    assert "or .env" not in project_file_text(tmp_path, ())
    (tmp_path / ".env").touch()
    assert "or .env" in project_file_text(tmp_path, ())


def test_only_what_is_installed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_agents() == []
    program = tmp_path / "aider"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert [each.name for each in installed_agents()] == ["aider"]

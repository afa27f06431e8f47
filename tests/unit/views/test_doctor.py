"""What would stand in the way of a run, found before there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Runtime
from interlock.journal.lock import lock_file
from interlock.service.project_folder import ProjectFolder
from interlock.views.cli import doctor
from interlock.views.cli.doctor import Finding, examine


def found(folder: Path) -> dict[str, Finding]:
    return {each.what: each for each in examine(ProjectFolder(folder))}


def test_what_is_wrong_with_one_thing_does_not_hide_the_next(workspace: Path) -> None:
    (workspace / "interlock.yaml").write_text("agnets: {}")
    (workspace / ".interlock").mkdir()
    (workspace / ".interlock/journal.db").write_text("no journal")
    findings = found(workspace)
    assert list(findings) == [
        "Python", "git", "stopping programs", "folder", "journal", "project file",
    ]  # fmt: skip
    assert not findings["journal"].fine
    assert not findings["project file"].fine
    assert "did you mean 'agents'?" in findings["project file"].said


def test_a_machine_that_cannot_stop_programs_for_certain_is_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way, fine in (("namespace", True), ("cgroup", True), ("subreaper", True), ("group", False)):
        monkeypatch.setattr(doctor, "containment", lambda way=way: way)
        assert found(workspace)["stopping programs"].fine is fine


async def test_the_last_run_is_told(workspace: Path) -> None:
    place = ProjectFolder(workspace)
    place.make()
    assert found(workspace)["journal"].said == "none yet"
    async with Runtime(journal=place.journal) as rt:
        await rt.flush()
        assert found(workspace)["journal"].said == f"run {rt.run_id} is in progress"
        lock_file(place.journal).write_text("")  # nobody has it, and nobody answers
        finding = found(workspace)["journal"]
        assert "was interrupted" in finding.said
        assert finding.help == "Resume it with `interlock run --resume`."
    assert found(workspace)["journal"].said.startswith(f"last run {rt.run_id}")


def test_agents_and_secrets_are_looked_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_TOKEN", raising=False)
    (workspace / "interlock.yaml").write_text(
        "agents:\n"
        "  sh: {command: [sh, -c, '{prompt}'], secrets: MY_TOKEN}\n"
        "  no: {command: [no-such-program]}\n"
        "  py: {python: 'json:dumps'}\n"
    )
    findings = found(workspace)
    assert findings["project file"].said == "interlock.yaml, 3 agents"
    assert findings["agent sh"].fine
    assert findings["agent no"].mark == "✗"
    assert findings["agent no"].help
    assert not findings["secret MY_TOKEN"].fine
    (workspace / ".env").write_text("MY_TOKEN=x\n")
    assert found(workspace)["secret MY_TOKEN"].fine

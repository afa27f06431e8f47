"""`multi-run` chooses its agents, and tells what became of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.errors import UsageError
from interlock.service.project_folder import ProjectFolder
from interlock.views.cli.app import run_app
from interlock.views.cli.commands.multi_run import _blocking


@pytest.fixture(autouse=True)
def _project(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(workspace))
    (workspace / "blocking_agents.py").write_text(
        "class Steps:\n    def run_step(self):\n        return 'done'\n\n"
        "def function():\n    pass\n"
    )
    (workspace / "interlock.yaml").write_text(
        "agents:\n"
        "  one: {python: 'blocking_agents:Steps', owns: src/, uses: [gpu]}\n"
        "  two: {python: 'blocking_agents:Steps'}\n"
        "  function: {python: 'blocking_agents:function'}\n"
        "  program: {command: 'true'}\n"
    )


def test_all_objects_with_a_run_step_are_taken_or_those_named(workspace: Path) -> None:
    place = ProjectFolder(workspace)
    assert [each.role for each in _blocking(place, [])] == ["one", "two"]
    assert [each.role for each in _blocking(place, ["two"])] == ["two"]
    with pytest.raises(UsageError, match="function has no blocking run_step"):
        _blocking(place, ["one", "function"])


def test_each_claims_what_the_project_file_says(workspace: Path) -> None:
    one, two = _blocking(ProjectFolder(workspace), [])
    assert list(map(str, one.claims)) == ["write src/", "gpu"]
    assert two.claims == ()


def test_it_runs_and_tells_facts(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["multi-run", "two", "-j", "1", "--timeout", "1m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"agent": "two", "status": "succeeded", "result": "done", "error": None}
    ]
    assert run_app(["multi-run", "two", "--timeout", "soon"]) == 2

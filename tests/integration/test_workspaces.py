"""Workspaces of real programs and processes, and of runs that are killed while one is prepared."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from interlock import Runtime, command, process
from interlock.runtime.ports import Ports
from tests.crash import killed
from tests.unit.execution.fake_workspaces import FakeWorkspaces, slow


def variable(name: str) -> str:
    return os.environ.get(name, "")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder that is not the project's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


async def test_a_program_runs_in_the_folder_that_was_prepared_for_it(
    workspace: Path, elsewhere: Path
) -> None:
    fake = FakeWorkspaces(elsewhere, prepare=slow(0.01))
    ports = replace(Ports(), workspaces=lambda _: fake)
    async with Runtime(workspace=workspace, ports=ports) as rt:
        printed = command(["sh", "-c", "pwd; echo $INTERLOCK_WORKSPACE; echo $FAKE; touch made"])
        outcome = await rt.submit(printed, id="a")
    assert outcome.result is not None
    assert outcome.result.split() == [str(elsewhere), str(elsewhere), "a/1"]
    assert (elsewhere / "made").exists()
    assert not fake.broken
    assert list(workspace.glob(".interlock/logs/*/a/1.log"))  # what is ours stays in the project
    assert not (elsewhere / ".interlock").exists()


async def test_a_process_has_the_variables_of_its_workspace(
    workspace: Path, elsewhere: Path
) -> None:
    ports = replace(Ports(), workspaces=lambda _: FakeWorkspaces(elsewhere))
    async with Runtime(workspace=workspace, ports=ports) as rt:
        assert (await rt.submit(process(variable), "FAKE", id="a")).result == "a/1"


async def test_a_run_that_is_killed_while_a_workspace_is_prepared_runs_the_task_again(
    workspace: Path, elsewhere: Path
) -> None:
    fake = FakeWorkspaces(elsewhere, prepare=slow(60))
    ports = replace(Ports(), workspaces=lambda _: fake)

    async def program(rt: Runtime) -> None:
        rt.submit(variable, "HOME", id="a", writes="f")
        while "prepare a/1" not in fake.log:
            await asyncio.sleep(0.01)

    journal = workspace / "journal.db"
    left = await killed(journal, program, workspace=workspace, ports=ports, grace=1)
    again = FakeWorkspaces(elsewhere)
    ports = replace(Ports(), workspaces=lambda _: again)
    async with Runtime(journal=left, resume=True, workspace=workspace, ports=ports) as rt:
        outcome = await rt.submit(variable, "HOME", id="a", writes="f")
    assert outcome.succeeded
    assert again.log[0] == "prepare a/1"  # what was cut off does not count as an attempt
    assert not again.broken

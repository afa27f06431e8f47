"""One run per folder: also without `.interlock`, and also for projects inside of each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.errors import UsageError
from interlock.journal.lock import JournalLock
from interlock.service.folder_lock import exclusive_run
from interlock.service.project_folder import ProjectFolder


def project(folder: Path) -> ProjectFolder:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "interlock.yaml").touch()
    return ProjectFolder(folder)


def refused(place: ProjectFolder) -> str:
    with pytest.raises(UsageError) as caught, exclusive_run(place):
        raise AssertionError
    return str(caught.value)


def test_a_second_run_is_kept_out_although_nothing_in_the_folder_says_who_is_there(
    tmp_path: Path,
) -> None:
    place = project(tmp_path)
    with exclusive_run(place):
        assert "already in progress here; its process is unknown" in refused(place)
    with exclusive_run(place):
        pass


def test_who_it_is_is_told_where_the_journal_says_so(tmp_path: Path) -> None:
    place = project(tmp_path)
    place.make()
    lock = JournalLock(place.journal)
    with exclusive_run(place):
        assert f"already in progress here, in process {os.getpid()} since" in refused(place)
    lock.release()


def test_a_project_inside_of_another_excludes_it_and_is_excluded_by_it(tmp_path: Path) -> None:
    outer, inner = project(tmp_path), project(tmp_path / "folder" / "inner")
    with exclusive_run(outer):
        assert f"in progress in {tmp_path}, and this project is inside" in refused(inner)
    with exclusive_run(inner):
        assert f"in progress in a project inside {tmp_path}" in refused(outer)
    with exclusive_run(outer):
        pass


def test_two_projects_inside_of_the_same_one_run_side_by_side(tmp_path: Path) -> None:
    project(tmp_path)
    with exclusive_run(project(tmp_path / "one")), exclusive_run(project(tmp_path / "other")):
        pass


def test_folders_that_are_no_projects_keep_nobody_out(tmp_path: Path) -> None:
    with exclusive_run(ProjectFolder(tmp_path)), exclusive_run(project(tmp_path / "inner")):
        pass


def test_an_agent_that_outlives_the_run_does_not_hold_the_folder(tmp_path: Path) -> None:
    place = project(tmp_path)
    with exclusive_run(place):
        agent = subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=False,
        )
        assert agent.stdout is not None
        agent.stdout.readline()
    with exclusive_run(place):
        agent.communicate(b"\n")

"""One run per folder: also without `.interlock`, and also for projects inside of each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.errors import UsageError
from interlock.journal.lock import JournalLock
from interlock.service.folder_lock import alone_in
from interlock.service.project_folder import Place


def project(folder: Path) -> Place:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "interlock.yaml").touch()
    return Place(folder)


def refused(place: Place) -> str:
    with pytest.raises(UsageError) as caught, alone_in(place):
        raise AssertionError
    return str(caught.value)


def test_a_second_run_is_kept_out_although_nothing_in_the_folder_says_who_is_there(
    tmp_path: Path,
) -> None:
    place = project(tmp_path)
    with alone_in(place):
        assert "going on here already; which process" in refused(place)
    with alone_in(place):
        pass


def test_who_it_is_is_told_where_the_journal_says_so(tmp_path: Path) -> None:
    place = project(tmp_path)
    place.make()
    lock = JournalLock(place.journal)
    with alone_in(place):
        assert f"going on here already, in process {os.getpid()} since" in refused(place)
    lock.release()


def test_a_project_inside_of_another_excludes_it_and_is_excluded_by_it(tmp_path: Path) -> None:
    outer, inner = project(tmp_path), project(tmp_path / "folder" / "inner")
    with alone_in(outer):
        assert f"going on in {tmp_path}, and this project is inside" in refused(inner)
    with alone_in(inner):
        assert f"going on in a project inside of {tmp_path}" in refused(outer)
    with alone_in(outer):
        pass


def test_two_projects_inside_of_the_same_one_run_side_by_side(tmp_path: Path) -> None:
    project(tmp_path)
    with alone_in(project(tmp_path / "one")), alone_in(project(tmp_path / "other")):
        pass


def test_folders_that_are_no_projects_keep_nobody_out(tmp_path: Path) -> None:
    with alone_in(Place(tmp_path)), alone_in(project(tmp_path / "inner")):
        pass


def test_an_agent_that_outlives_the_run_does_not_hold_the_folder(tmp_path: Path) -> None:
    place = project(tmp_path)
    with alone_in(place):
        agent = subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=False,
        )
        assert agent.stdout is not None
        agent.stdout.readline()
    with alone_in(place):
        agent.communicate(b"\n")

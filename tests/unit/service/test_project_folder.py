"""Which project a folder belongs to, and what is kept where."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from interlock.errors import UsageError
from interlock.service.project_folder import ProjectFolder, find_project
from interlock.views.cli.doctor import examine


def test_the_nearest_folder_above_with_a_project_file_is_the_project(tmp_path: Path) -> None:
    (tmp_path / "interlock.yaml").touch()
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert find_project(inner).root == tmp_path.resolve()
    (tmp_path / "a/interlock.yaml").touch()
    assert find_project(inner).root == (tmp_path / "a").resolve()


def test_a_journal_makes_a_project_as_well(tmp_path: Path) -> None:
    (tmp_path / ".interlock").mkdir()
    (tmp_path / ".interlock/journal.db").touch()
    (tmp_path / "below").mkdir()
    assert find_project(tmp_path / "below").root == tmp_path.resolve()


def test_a_folder_without_any_is_its_own_project(tmp_path: Path) -> None:
    place = find_project(tmp_path)
    assert place.root == tmp_path.resolve()
    assert place.project().agents == {}
    assert not place.folder.exists()  # looking makes nothing


def test_what_interlock_keeps_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    place = find_project(tmp_path)
    place.make()
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    ignore = place.folder / ".gitignore"
    assert "*" in ignore.read_text().splitlines()
    ignore.write_text("mine")
    place.make()
    assert ignore.read_text() == "mine"


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".interlock").write_text("a file")
    with pytest.raises(UsageError, match="check the permissions"):
        find_project(tmp_path).make()


def test_where_nothing_has_run_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing has run in"):
        find_project(tmp_path).reader()


@pytest.mark.parametrize("name", ["journal.db.agents.lock", "interlock.log", "journal.db"])
def test_a_folder_where_a_file_belongs_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / ".interlock" / name).mkdir(parents=True)
    with pytest.raises(UsageError, match=f"{name} is not a file; Interlock needs this path"):
        ProjectFolder(tmp_path).make()


@pytest.mark.parametrize("name", ["logs", "tmp"])
def test_a_file_where_a_folder_belongs_is_named(tmp_path: Path, name: str) -> None:
    ProjectFolder(tmp_path).make()
    (tmp_path / ".interlock" / name).touch()
    with pytest.raises(UsageError, match=f"{name} is not a folder; Interlock needs this path"):
        ProjectFolder(tmp_path).make()
    said = [each.said for each in examine(ProjectFolder(tmp_path)) if not each.fine]
    assert any(f"{name} is not a folder" in each for each in said)

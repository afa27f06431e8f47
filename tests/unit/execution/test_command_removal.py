"""A folder of ours is removed whatever is in it, and nothing is done through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlock.execution.commands.removal import remove
from tests.ordinary import ordinarily


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    made = tmp_path / "precious"
    (made / "shared").mkdir(parents=True)
    (made / "file").write_text("keep")
    made.chmod(0o755)
    (made / "shared").chmod(0o1777)
    return made


def is_untouched(precious: Path) -> bool:
    modes = [os.stat(each).st_mode & 0o7777 for each in (precious, precious / "shared")]
    return modes == [0o755, 0o1777] and (precious / "file").read_text() == "keep"


def test_a_link_in_its_place_is_removed_and_not_followed(tmp_path: Path, precious: Path) -> None:
    ours = tmp_path / "ours"
    ours.symlink_to(precious)
    remove(ours)
    assert not ours.is_symlink()
    assert is_untouched(precious)


def test_links_inside_are_removed_and_not_followed(tmp_path: Path, precious: Path) -> None:
    inside = tmp_path / "ours" / "closed"
    inside.mkdir(parents=True)
    (inside / "link").symlink_to(precious)
    (tmp_path / "ours" / "link").symlink_to(precious / "shared")
    (tmp_path / "ours" / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(inside / "pipe")
    remove(tmp_path / "ours")
    assert list(tmp_path.iterdir()) == [precious]
    assert is_untouched(precious)


def test_a_file_in_its_place_is_removed_and_nothing_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "ours").write_text("")
    remove(tmp_path / "ours")
    remove(tmp_path / "ours")
    remove(tmp_path / "nowhere" / "ours")
    assert list(tmp_path.iterdir()) == []


def test_folders_in_each_other_deeper_than_any_path_are_removed(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    inside = os.dup(top)
    for name in ("ours", *["deep-ish"] * 1100):
        os.mkdir(name, dir_fd=inside)
        deeper = os.open(name, os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = deeper
    os.close(inside)
    os.close(top)
    remove(tmp_path / "ours")
    assert list(tmp_path.iterdir()) == []


def test_what_an_ordinary_user_has_closed_is_opened_and_removed() -> None:
    script = """
import os
from pathlib import Path
from interlock.execution.commands.removal import remove
os.makedirs("ours/x/y/z")
Path("ours/x/y/file").touch()
for each in ("ours/x/y/z", "ours/x/y", "ours/x", "ours"):
    os.chmod(each, 0)
remove(Path("ours").resolve())
print(os.listdir())
"""
    assert ordinarily(script) == "[]\n"

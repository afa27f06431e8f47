"""Where claims lead to on disk."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from interlock.runtime.claim_paths import WorkspacePaths

NAMES = ("folder", "file", "link", "away", "loop", "dangling", "missing", "..", ".", "")


def test_a_path_leads_where_the_system_says_it_does(tmp_path: Path) -> None:
    (tmp_path / "folder" / "folder").mkdir(parents=True)
    (tmp_path / "folder" / "file").write_text("")
    (tmp_path / "folder" / "link").symlink_to("..")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "away").symlink_to("/etc")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("missing/file")
    workspace = WorkspacePaths(tmp_path)
    for names in itertools.product(NAMES, repeat=3):
        expected = os.path.realpath(os.path.join(workspace.root, *names))
        assert workspace._real(list(names)) == expected, names

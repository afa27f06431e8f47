"""Copies of the journals in `tests/fixtures/`, to work with."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

from interlock.journal.rows import checksum

FIXTURES = Path(__file__).parents[1] / "fixtures" / "journal-0.1.0"


def copied(name: str, to: Path) -> Path:
    """A journal of 0.1.0 to work with, as if it had run in the folder it is in now."""
    source, copy = FIXTURES / name, to / Path(name).name
    shutil.copy(source, copy)
    if Path(f"{source}.files").exists():
        shutil.copytree(f"{source}.files", f"{copy}.files")
    moved(copy, to)
    return copy


def moved(journal: Path, workspace: Path) -> None:
    """Say where the workspace is now: all else in a journal is the same in any place."""
    connection = sqlite3.connect(journal)
    for no, run_id, started_at, inherits, options in connection.execute(
        "SELECT no, id, started_at, inherits, options FROM runs"
    ).fetchall():
        text = json.dumps({**json.loads(options), "workspace": str(workspace)})
        sum_ = checksum(text, None, no, run_id, started_at, inherits)
        connection.execute(
            "UPDATE runs SET options = ?, checksum = ? WHERE no = ?", (text, sum_, no)
        )
    connection.commit()
    connection.close()

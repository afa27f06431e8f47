"""A run does not go on without its journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interlock.service import journal_watch as vanished
from interlock.service.journal_watch import JournalVanished, JournalWatch


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(vanished, "_INTERVAL", 0.001)
    (tmp_path / "journal.db.lock").touch()
    (tmp_path / "journal.db").touch()
    return tmp_path / "journal.db"


@pytest.mark.parametrize("name", ["journal.db", "journal.db.lock"])
async def test_what_goes_on_ends_when_a_file_is_deleted(journal: Path, name: str) -> None:
    with pytest.raises(JournalVanished, match=f"{name} was deleted"):
        async with JournalWatch(journal).ends_the_block():
            await asyncio.sleep(0.01)
            journal.with_name(name).unlink()
            await asyncio.Event().wait()


async def test_and_when_another_one_has_its_name(journal: Path) -> None:
    with pytest.raises(JournalVanished):
        async with JournalWatch(journal).ends_the_block():
            await asyncio.sleep(0.01)
            (journal.parent / "new").touch()
            (journal.parent / "new").replace(journal)
            await asyncio.Event().wait()


async def test_timeouts_of_others_are_theirs(journal: Path) -> None:
    with pytest.raises(TimeoutError):
        async with JournalWatch(journal).ends_the_block():
            raise TimeoutError

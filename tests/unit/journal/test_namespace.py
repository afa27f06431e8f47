"""Records beside the runs: there as soon as `put` returns, whatever comes after."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import NotStorable
from interlock.journal.files import LARGE
from tests.unit.journal.story import opened, run


def test_a_record_is_there_after_reopening_until_it_is_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        sessions = journal.records("sessions")
        await sessions.put("a", {"messages": [("user", "hi")]})
        await sessions.put("a", {"messages": [("user", "hello")]})
        await sessions.put("b", None)
        journal.close()
        journal = await opened(tmp_path / "j.db", "r2")
        sessions = journal.records("sessions")
        assert sessions.get("a") == {"messages": [("user", "hello")]}
        assert list(sessions.items()) == [("a", {"messages": [("user", "hello")]}), ("b", None)]
        await sessions.delete("a")
        await sessions.delete("never there")
        assert sessions.get("a", "gone") == "gone"
        assert [key for key, _ in sessions.items()] == ["b"]
        journal.close()

    run(main())


def test_namespaces_do_not_see_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        await journal.records("cron").put("k", 1)
        await journal.records("cron2").put("k", 2)
        assert dict(journal.records("cron").items()) == {"k": 1}
        assert dict(journal.records("none").items()) == {}
        journal.close()

    run(main())


def test_more_records_than_a_page_come_in_the_order_of_their_keys(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db", durability="normal")
        names = [f"k{number:05}" for number in range(2_500)]
        records = journal.records("ns")
        for name in reversed(names):
            await records.put(name, name)
        assert [key for key, _ in records.items()] == names
        journal.close()

    run(main())


def test_a_large_record_comes_back_whole(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        value = {"text": "ä" * LARGE}
        await journal.records("ns").put("k", value)
        assert journal.records("ns").get("k") == value
        assert len(list((tmp_path / "j.db.files").iterdir())) == 1
        journal.close()

    run(main())


def test_what_cannot_be_stored_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        records = journal.records("ns")
        await records.put("k", 1)
        with pytest.raises(NotStorable, match=r"record 'k'\.f"):
            await records.put("k", {"f": open})
        assert records.get("k") == 1
        journal.close()

    run(main())

"""The thread that commits: nothing is dropped, and everybody is told on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.errors import InterlockError, InvalidOption
from interlock.journal.disk import Disk
from interlock.journal.reader import Reader
from interlock.journal.sqlite import SqliteJournal
from interlock.journal.writer import Line
from interlock.model.event import Kind
from tests.simulation.faulty_disk import DiskFault, FaultyDisk
from tests.unit.journal.story import KNOWN, Story, opened, run


class GatedDisk(Disk):
    """Commits when it is let to, and counts."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.reached = threading.Event()
        self.commits = 0

    def commit(self, connection: sqlite3.Connection) -> None:
        self.reached.set()
        self.gate.wait()
        self.commits += 1
        super().commit(connection)


def test_what_comes_during_a_commit_goes_into_the_next_one_together(tmp_path: Path) -> None:
    async def main() -> None:
        disk = GatedDisk()
        journal = await opened(tmp_path / "j.db", disk=disk)
        story = Story()
        disk.gate.clear()
        disk.reached.clear()
        first = journal.append([story.tell(Kind.LOGGED, "", 0)])
        await asyncio.to_thread(disk.reached.wait)
        before = disk.commits
        rest = [journal.append([story.tell(Kind.LOGGED, "", n)]) for n in range(50)]
        disk.gate.set()
        for done in (first, *rest):
            await done
        assert disk.commits == before + 2
        assert len(journal.since(0)) == 51
        journal.close()

    run(main())


def test_nobody_is_told_before_the_commit(tmp_path: Path) -> None:
    async def main() -> None:
        disk = GatedDisk()
        journal = await opened(tmp_path / "j.db", disk=disk)
        disk.gate.clear()
        disk.reached.clear()
        done = asyncio.ensure_future(journal.append([Story().tell(Kind.LOGGED)]))
        await asyncio.to_thread(disk.reached.wait)
        assert not done.done()
        assert list(journal.since(0)) == []
        disk.gate.set()
        await done
        assert len(journal.since(0)) == 1
        journal.close()

    run(main())


def test_a_full_disk_is_told_of_once_and_once_that_there_is_room_again(tmp_path: Path) -> None:
    async def main() -> None:
        told: list[tuple[str, str]] = []

        def on_trouble(error: Exception | None) -> None:
            told.append((str(error), threading.current_thread().name))

        disk = FaultyDisk(at=5, fault=DiskFault.FULL, times=4)
        journal = await opened(tmp_path / "j.db", disk=disk, on_trouble=on_trouble)
        story = Story()
        for n in range(5):
            await journal.append([story.tell(Kind.LOGGED, "", n)])
        assert disk.struck == 4
        here = threading.current_thread().name
        assert told == [("database or disk is full", here), ("None", here)]
        assert [event.data for event in journal.since(0)] == [0, 1, 2, 3, 4]
        journal.close()

    run(main())


def test_closing_on_a_disk_that_stays_full_does_not_hang_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        disk = FaultyDisk(at=5, fault=DiskFault.FULL, times=10**9)
        journal = await opened(tmp_path / "j.db", disk=disk)
        done = asyncio.ensure_future(journal.append([Story().tell(Kind.LOGGED)]))
        with pytest.raises(InterlockError, match="could not be written"):
            journal.close()
        assert done.cancelled()

    run(main())
    with Reader(tmp_path / "j.db") as reader:
        assert reader.last(reader.runs()[0]) == 0


class BrokenDisk(Disk):
    """Has a bug, from its fifth statement on."""

    def __init__(self) -> None:
        self.left = 5

    def execute(
        self, connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()
    ) -> None:
        self.left -= 1
        if self.left < 0:
            raise ZeroDivisionError
        super().execute(connection, query, values)


def test_a_bug_is_told_to_all_who_wait_and_is_not_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db", disk=BrokenDisk())
        story = Story()
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await journal.append([story.tell(Kind.LOGGED)])
        journal.close()

    run(main())


def test_a_number_that_was_used_before_is_a_bug_and_not_damage(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        await journal.append([Story().tell(Kind.LOGGED)])
        with pytest.raises(sqlite3.IntegrityError):
            await journal.append([Story().tell(Kind.LOGGED)])
        journal.close()

    run(main())


def test_a_lock_of_another_program_is_waited_for(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        other = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        done = asyncio.ensure_future(journal.append([Story().tell(Kind.LOGGED)]))
        await asyncio.sleep(0)
        other.execute("ROLLBACK")
        other.close()
        await done
        journal.close()

    run(main())


def test_after_closing_nothing_is_taken(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        journal.close()
        with pytest.raises(InterlockError, match="closed"):
            await journal.append([Story().tell(Kind.LOGGED)])

    run(main())


def test_an_unknown_durability_is_refused_and_leaves_no_lock(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(InvalidOption, match="durability"):
            SqliteJournal(tmp_path / "j.db", durability="fast", known=KNOWN)  # type: ignore[arg-type]
        SqliteJournal(tmp_path / "j.db", durability="normal", known=KNOWN).close()

    run(main())


def test_the_pause_between_tries_doubles_from_ten_milliseconds_up_to_a_second() -> None:
    class FullDisk:
        def write(self, batches: Sequence[object]) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    line = Line(cast(Any, FullDisk()))
    line.waiting.append(cast(Any, (object(), object())))
    pauses = []
    for _ in range(10):
        line.take()
        with pytest.raises(sqlite3.OperationalError):
            line.commit()
        pauses.append(line.pause)
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]


def test_after_a_commit_the_next_failure_is_tried_again_as_quickly_as_the_first() -> None:
    class Disk:
        is_full = True

        def write(self, batches: Sequence[object]) -> None:
            if self.is_full:
                raise sqlite3.OperationalError("database or disk is full")

    disk = Disk()
    line = Line(cast(Any, disk))
    pauses = []
    for is_full in (True, True, False, True):
        disk.is_full = is_full
        line.waiting.append(cast(Any, (object(), object())))
        line.take()
        with contextlib.suppress(sqlite3.OperationalError):
            line.commit()
        pauses.append(line.pause)
    assert pauses == [0.01, 0.02, 0.0, 0.01]

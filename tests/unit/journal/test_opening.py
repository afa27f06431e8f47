"""A journal that cannot be used gets a clear error that says how to go on, and is not touched."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InvalidOption, UnreadableJournal
from interlock.journal.files import LARGE
from interlock.journal.opening import check
from interlock.journal.reader import Reader
from interlock.journal.rows import checksum
from interlock.journal.schema.codec import Codec
from interlock.journal.sqlite import SqliteJournal
from interlock.journal.tables import APPLICATION_ID, VERSION
from interlock.model.event import Kind
from interlock.model.task import Task
from tests.unit.journal.story import AGENT, KNOWN, Story, opened, run


def make(path: Path, tasks: int = 60) -> None:
    """A journal with a bit of everything."""

    async def main() -> None:
        journal = await opened(path, durability="normal")
        story = Story()
        for number in range(tasks):
            task = Task(f"t{number}", AGENT, key=f"k{number}", prompt="p" * 50 * (number % 7))
            await journal.append(story.life(task, {"number": number, "text": "r" * 40}))
        await journal.append(story.life(Task("large"), "x" * (LARGE + 1)))
        await journal.records("ns").put("k", list(range(50)))
        await journal.append([story.tell(Kind.RUN_ENDED)])
        journal.close()

    run(main())


def content(path: Path) -> Any:
    """All that must not change unnoticed: what is folded from it can be folded again."""
    with Reader(path, Codec(KNOWN)) as reader:
        return [
            (
                each[:3],
                list(reader.all_events(each)),
            )
            for each in reader.runs()
        ]


def by_name(path: Path) -> list[Any]:
    with Reader(path, Codec(KNOWN)) as reader:
        found = [reader.success(f"k{number}") for number in range(60)]
        return [*found, reader.record("ns", "k")]


def open_it(path: Path) -> None:
    async def main() -> None:
        journal = SqliteJournal(path, known=KNOWN)
        journal.close()

    run(main())


def refused(path: Path, match: str) -> None:
    """Opening it for writing and for reading says so, and leaves it as it is."""
    before = path.read_bytes() if path.is_file() else None
    for attempt in (open_it, Reader):
        with pytest.raises(UnreadableJournal, match=match) as caught:
            attempt(path)
        assert str(path) in str(caught.value)
        assert str(caught.value).count(". ") >= 1  # what is wrong, and what to do
    assert before is None or path.read_bytes() == before
    assert not Path(f"{path}-wal").exists()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_text("dear diary " * 1000)
    refused(tmp_path / "j.db", "not a database")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.db").touch()
    refused(tmp_path / "j.db", "of another program")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_database_of_another_program_is_refused(tmp_path: Path, mode: str) -> None:
    connection = sqlite3.connect(tmp_path / "j.db")
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE runs (no, id)")
    connection.commit()
    connection.close()
    refused(tmp_path / "j.db", "of another program")


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "j.db", 3)
    connection = sqlite3.connect(tmp_path / "j.db")
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    refused(tmp_path / "j.db", "newer Interlock")


def test_a_newer_version_that_only_the_log_knows_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "made.db", 3)
    writer = sqlite3.connect(tmp_path / "made.db")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute(f"PRAGMA user_version = {VERSION + 1}")
    for suffix in ("", "-wal"):  # as a kill at this moment would leave them
        shutil.copy(f"{tmp_path}/made.db{suffix}", f"{tmp_path}/j.db{suffix}")
    writer.close()
    for reads in (SqliteJournal, Reader):
        with pytest.raises(UnreadableJournal, match="newer Interlock"):
            reads(tmp_path / "j.db")
    left = sqlite3.connect(tmp_path / "j.db")
    assert left.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    left.close()


@pytest.mark.parametrize("data", ['{"a":', '{"$":5,"of":1}', '{"$":["x"],"of":1}', "[" * 100_000])
def test_data_that_cannot_be_decoded_is_damage_also_if_its_checksum_is_right(
    tmp_path: Path, data: str
) -> None:
    make(tmp_path / "j.db", 3)
    connection = sqlite3.connect(tmp_path / "j.db")
    place, *rest = connection.execute("SELECT seq, at, kind, task_id FROM events").fetchone()
    sum_ = checksum(data, None, place, *rest)
    update = "UPDATE events SET data = ?, checksum = ? WHERE seq = ?"
    connection.execute(update, (data, sum_, place))
    connection.commit()
    connection.close()
    with Reader(tmp_path / "j.db") as reader:
        run = reader.last_run()
        assert run is not None
        with pytest.raises(UnreadableJournal, match=r"damaged \(event 1 cannot be decoded"):
            list(reader.all_events(run))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.db").mkdir()
    refused(tmp_path / "j.db", "is a folder")


def test_reading_a_journal_that_is_not_there_does_not_make_one(tmp_path: Path) -> None:
    with pytest.raises(UnreadableJournal, match="no such file"):
        Reader(tmp_path / "j.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_journal_without_permission_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "j.db", 3)
    (tmp_path / "j.db").chmod(0o000)
    with pytest.raises(UnreadableJournal, match="not readable"):
        Reader(tmp_path / "j.db")
    (tmp_path / "j.db").chmod(0o400)
    with pytest.raises(UnreadableJournal, match="not writable"):
        open_it(tmp_path / "j.db")


def test_a_refused_journal_is_not_locked(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_text("x" * 5000)
    refused(tmp_path / "j.db", "not a database")
    (tmp_path / "j.db").unlink()
    open_it(tmp_path / "j.db")


def test_a_half_made_journal_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / ".j.db.new").write_text("what a crash left")
    open_it(tmp_path / "j.db")
    with Reader(tmp_path / "j.db") as reader:
        assert reader.runs() == []


def test_a_truncated_journal_is_refused_wherever_it_was_cut(tmp_path: Path) -> None:
    make(tmp_path / "whole.db")
    size = (tmp_path / "whole.db").stat().st_size
    for kept in (1, 99, 100, 4095, 4096, 5000, size // 2, size // 2 // 4096 * 4096, size - 4096):
        path = tmp_path / f"{kept}.db"
        path.write_bytes((tmp_path / "whole.db").read_bytes()[:kept])
        refused(path, "damaged|of another program")


def flipped(data: bytes, position: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    return bytes(changed)


def test_a_flipped_bit_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    make(tmp_path / "whole.db")
    data = (tmp_path / "whole.db").read_bytes()
    files = tmp_path / "whole.db.files"
    expected, expected_by_name = content(tmp_path / "whole.db"), by_name(tmp_path / "whole.db")
    chance = random.Random(4)
    places = [*range(0, 100, 3), *(chance.randrange(len(data)) for _ in range(150))]
    noticed = 0
    for number, place in enumerate(places):
        path = tmp_path / f"{number}.db"
        path.write_bytes(flipped(data, place, chance.randrange(8)))
        shutil.copytree(files, tmp_path / f"{number}.db.files")
        before = path.read_bytes()
        try:
            check(path)
            found, named = content(path), by_name(path)
        except UnreadableJournal as error:
            noticed += 1
            assert str(path) in str(error)  # noqa: PT017 - either this or the same content
        else:
            assert found == expected, f"bit at {place}"
            # A name in which a bit has flipped is another name: nothing is found under the old.
            assert all(map(lambda a, b: a in (None, b), named, expected_by_name))
        assert path.read_bytes() == before
        path.unlink()
    assert noticed > len(places) // 4


def test_a_coordinator_does_not_open_a_file_that_does_not_hang_together(tmp_path: Path) -> None:
    make(tmp_path / "j.db")
    data = bytearray((tmp_path / "j.db").read_bytes())
    data[4096 * 3 : 4096 * 4] = bytes(4096)
    (tmp_path / "j.db").write_bytes(data)
    with pytest.raises(UnreadableJournal, match="damaged"):
        open_it(tmp_path / "j.db")
    assert (tmp_path / "j.db").read_bytes() == data


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-2] + b'y"'),
    ],
    ids=["missing", "short", "changed"],
)
def test_a_damaged_file_beside_the_journal_is_noticed(
    tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    make(tmp_path / "j.db", 3)
    (file,) = (tmp_path / "j.db.files").iterdir()
    damage(file)
    with pytest.raises(UnreadableJournal, match=r"damaged .*event \d+: its file"):
        content(tmp_path / "j.db")


def test_a_journal_that_is_removed_under_a_run_ends_it_with_a_clear_error(tmp_path: Path) -> None:
    async def main() -> None:
        journal = await opened(tmp_path / "j.db")
        (tmp_path / "j.db").unlink()
        with pytest.raises(UnreadableJournal, match="removed or replaced"):
            await journal.append([Story().tell(Kind.LOGGED)])
        with pytest.raises(UnreadableJournal, match="removed or replaced"):
            await journal.append([Story().tell(Kind.LOGGED)])
        journal.close()

    run(main())


def test_the_header_says_whose_file_it_is(tmp_path: Path) -> None:
    open_it(tmp_path / "j.db")
    assert (tmp_path / "j.db").read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big") == b"ILKJ"


def test_a_path_with_strange_letters_works(tmp_path: Path) -> None:
    path = tmp_path / "a b%41?x=#ü" / "j?mode=memory.db"
    open_it(path)
    assert path.is_file()
    with Reader(path) as reader:
        assert reader.runs() == []


def test_a_symbolic_link_is_the_journal_it_points_to(tmp_path: Path) -> None:
    make(tmp_path / "j.db", 3)
    (tmp_path / "link.db").symlink_to(tmp_path / "j.db")
    assert content(tmp_path / "link.db") == content(tmp_path / "j.db")


@pytest.mark.parametrize(
    "name",
    ["", "~nobodyatall/j.db", "{}", "{}/file/j.db", "{}/loop/j.db", "{}/file", "{}/" + "x" * 300],
    ids=["empty", "nobody", "folder", "under a file", "loop", "somebody else's", "long"],
)
def test_a_place_where_no_journal_can_be_is_refused_and_left_alone(
    tmp_path: Path, name: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").write_text("somebody else's")
    (home / "loop").symlink_to("loop")
    before = sorted(tmp_path.rglob("*"))

    async def main() -> None:
        with pytest.raises((UnreadableJournal, InvalidOption)):
            SqliteJournal(name.format(home))

    run(main())
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises((UnreadableJournal, InvalidOption)):
        Reader(name.format(home))

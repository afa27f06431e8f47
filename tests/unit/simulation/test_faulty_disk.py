"""The disk that fails on demand does what it says, so that tests with it mean something."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.simulation.faulty_disk import DiskFault, FaultyDisk, PowerCut


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    made.execute("CREATE TABLE t (x)")
    return made


def rows(connection: sqlite3.Connection) -> int:
    found = sqlite3.connect(connection.execute("PRAGMA database_list").fetchone()[2])
    try:
        return int(found.execute("SELECT count(*) FROM t").fetchone()[0])
    finally:
        found.close()


def write(disk: FaultyDisk, connection: sqlite3.Connection) -> None:
    disk.execute(connection, "BEGIN")
    disk.execute(connection, "INSERT INTO t VALUES (1)")
    disk.commit(connection)


def test_without_a_plan_it_only_counts(connection: sqlite3.Connection, tmp_path: Path) -> None:
    disk = FaultyDisk()
    write(disk, connection)
    disk.write_file(tmp_path / "f", b"data")
    assert (disk.operations, disk.struck) == (4, 0)
    assert rows(connection) == 1
    assert (tmp_path / "f").read_bytes() == b"data"
    connection.close()


@pytest.mark.parametrize(
    ("fault", "message"),
    [(DiskFault.ERROR, "I/O error"), (DiskFault.FULL, "full"), (DiskFault.SHORT, "I/O error")],
)
def test_a_commit_that_fails_has_written_nothing(
    connection: sqlite3.Connection, fault: DiskFault, message: str
) -> None:
    with pytest.raises(sqlite3.OperationalError, match=message):
        write(FaultyDisk(3, fault), connection)
    assert rows(connection) == 0
    connection.close()


def test_an_unsure_commit_fails_and_is_written(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError):
        write(FaultyDisk(3, DiskFault.UNSURE), connection)
    assert rows(connection) == 1
    connection.close()


@pytest.mark.parametrize(
    ("fault", "written"), [(DiskFault.CRASH_BEFORE, 0), (DiskFault.CRASH_AFTER, 1)]
)
def test_a_crash_at_the_commit(
    connection: sqlite3.Connection, fault: DiskFault, written: int
) -> None:
    disk = FaultyDisk(3, fault)
    with pytest.raises(PowerCut):
        write(disk, connection)
    assert rows(connection) == written
    with pytest.raises(PowerCut):
        disk.execute(connection, "SELECT 1")
    connection.close()


def test_it_goes_on_failing_as_often_as_told(connection: sqlite3.Connection) -> None:
    disk = FaultyDisk(1, DiskFault.FULL, times=3)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError):
            disk.execute(connection, "SELECT 1")
    disk.execute(connection, "SELECT 1")
    assert disk.struck == 3
    connection.close()


def test_a_short_write_leaves_half_a_file_under_another_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output"):
        FaultyDisk(1, DiskFault.SHORT).write_file(tmp_path / "f", b"12345678")
    assert not (tmp_path / "f").exists()
    assert (tmp_path / ".f.partial").read_bytes() == b"1234"

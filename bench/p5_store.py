"""P5, the store alone: appends with many in flight against the fsyncs of this disk; large files."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Literal

from bench.figure import Figure
from interlock import Event, Kind, Outcome, State, Task, write
from interlock.journal import opening
from interlock.journal.reader import Reader
from interlock.journal.sqlite import SqliteJournal
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.runtime.recorded_types import RECORDED_TYPES

IN_FLIGHT = 100
TASKS = 5_000
ROUNDS = 5
EVENTS = 1_000_000
KNOWN = RECORDED_TYPES


def measure() -> Iterator[Figure]:
    # In the working folder: a temporary one may be in memory, where fsync costs nothing.
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        yield from _throughput(Path(folder))
        yield from _large(Path(folder) / "large.db")


def _throughput(folder: Path) -> Iterator[Figure]:
    fsync, single, full, normal = [], [], [], []
    for number in range(ROUNDS):
        gc.collect()
        fsync.append(_fsync(folder / "fsync"))
        single.append(_single_rows(folder / f"single{number}.db"))
        full.append(asyncio.run(_tasks(folder / f"full{number}.db", "full")))
        normal.append(asyncio.run(_tasks(folder / f"normal{number}.db", "normal")))
    yield Figure("P5 fsync of this disk", median(fsync) * 1e6, unit="µs")
    yield Figure("P5 raw SQLite FULL, a row per commit", median(single) * 1e6, unit="µs per row")
    yield Figure("P5 store FULL, 100 in flight", median(full) * 1e6, unit="µs per task")
    yield Figure("P5 store NORMAL, 100 in flight", median(normal) * 1e6, unit="µs per task")
    ratio = median(a / b for a, b in zip(full, fsync, strict=True))
    # At least five tasks per fsync is at most a fifth of an fsync per task.
    yield Figure("P5 store FULL, fsyncs per task", ratio, 0.2, "×")


def _fsync(path: Path, times: int = 200) -> float:
    opened = os.open(path, os.O_RDWR | os.O_CREAT)
    began = perf_counter()
    for number in range(times):
        os.pwrite(opened, b"x" * 4096, number * 4096)
        os.fsync(opened)
    spent = perf_counter() - began
    os.close(opened)
    return spent / times


def _single_rows(path: Path, times: int = 200) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (x)")
    began = perf_counter()
    for number in range(times):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
    spent = perf_counter() - began
    connection.close()
    return spent / times


async def _tasks(path: Path, durability: Literal["full", "normal"]) -> float:
    """Seconds per task: what a start tells is durable, then what its end tells is."""
    journal = SqliteJournal(path, durability=durability, known=KNOWN)
    await journal.begin("bench", 0.0)
    numbers = iter(range(1, 10**9))
    tasks = iter(range(TASKS))

    async def worker() -> None:
        for number in tasks:
            await journal.append(_begun(f"t{number}", numbers))
            await journal.append(_ended(f"t{number}", numbers))

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(worker())
    spent = perf_counter() - began
    journal.close()
    return spent / TASKS


def _begun(name: str, numbers: Iterator[int]) -> list[Event]:
    task = Task(name, _large, claims=_CLAIMS)
    return [
        Event(next(numbers), 1.0, Kind.SUBMITTED, name, task),
        Event(next(numbers), 1.0, Kind.WAITING, name, do.Change(name, State.WAITING, "")),
        Event(next(numbers), 1.0, Kind.STARTED, name, do.Start(name, 1, 1)),
    ]


def _ended(name: str, numbers: Iterator[int]) -> list[Event]:
    outcome = Outcome(name, State.SUCCEEDED, {"ok": True}, None, 1, _NOW, _NOW, 0.5)
    return [
        Event(next(numbers), 2.0, Kind.ENDED, name, s.Ended(name, 1)),
        Event(next(numbers), 2.0, Kind.SETTLED, name, outcome),
    ]


def _large(path: Path) -> Iterator[Figure]:
    """What others wait for when a journal has become large."""
    asyncio.run(_fill(path))
    yield Figure("P5 a million events, size of the file", path.stat().st_size / 1e6, unit="MB")
    yield Figure("P5 a million events, open to write", _ms(lambda: _open(path)), unit="ms")
    reader = Reader(path)
    run = reader.runs()[0]
    yield Figure("P5 a million events, open to read", _ms(lambda: Reader(path).close()), unit="ms")
    yield Figure("P5 a million events, status", _ms(lambda: reader.status(run)), unit="ms")
    middle = EVENTS // 2
    page = _ms(lambda: reader.events(run, middle, 100))
    yield Figure("P5 a million events, 100 from the middle", page, unit="ms")
    began = perf_counter()
    assert sum(1 for _ in reader.all_events(run)) == EVENTS
    yield Figure("P5 a million events, reading all", perf_counter() - began, unit="s")
    check = _ms(lambda: opening.check_pages(path), 1)
    yield Figure("P5 a million events, checking every page", check, unit="ms")
    reader.close()


async def _fill(path: Path) -> None:
    journal = SqliteJournal(path, durability="normal", known=KNOWN)
    await journal.begin("large", 0.0)
    numbers = iter(range(1, 10**9))
    for first in range(0, EVENTS // 5, 1_000):
        names = [f"t{number}" for number in range(first, first + 1_000)]
        events = [event for name in names for event in _begun(name, numbers)]
        events += [event for name in names for event in _ended(name, numbers)]
        await journal.append(events)
    journal.close()


def _open(path: Path) -> None:
    async def main() -> None:
        SqliteJournal(path, known=KNOWN).close()

    asyncio.run(main())


def _ms(call: object, times: int = 3) -> float:
    spent = []
    for _ in range(times):
        began = perf_counter()
        call()  # type: ignore[operator]
        spent.append(perf_counter() - began)
    return median(spent) * 1e3


_CLAIMS = (write("src/a.py"), write("src/b.py"))
_NOW = datetime.now(UTC)


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.name:<52}{figure.value:>12.3f} {figure.unit}", flush=True)

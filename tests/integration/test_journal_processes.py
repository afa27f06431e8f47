"""Real processes: one writes and is killed, others read meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.errors import AlreadyRunning
from interlock.journal.follow import follow, follow_async
from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Event, Kind
from tests.unit.journal.story import KNOWN

KILLS = 30
ROOT = Path(__file__).parents[2]


def writer(path: Path, durability: str = "full") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.journal_writer", str(path), durability],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )


def numbers(path: Path) -> list[int]:
    with Reader(path, Codec(KNOWN)) as reader:
        return [event.number for run in reader.runs() for event in reader.all_events(run)]


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, durability: str) -> None:
    chance = random.Random(9)
    path = tmp_path / "j.db"
    written = 0
    for kill in range(KILLS // 2):
        with writer(path, durability) as process:
            assert process.stdout is not None
            told = [int(process.stdout.readline()) for _ in range(chance.randrange(1, 60))]
            process.send_signal(signal.SIGKILL)
            told += [int(line) for line in process.stdout]
        found = numbers(path)
        assert found == list(range(1, len(found) + 1)), f"kill {kill}"
        assert len(found) % 3 == 0, "a turn is there as a whole or not at all"
        assert written < max(told) <= len(found), f"kill {kill}"
        written = len(found)


def test_a_reader_in_another_process_is_never_locked_out(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with writer(path, "normal") as process:
        assert process.stdout is not None
        process.stdout.readline()
        last, looks = 0, 0
        with Reader(path, Codec(KNOWN)) as reader:
            run = reader.runs()[0]
            while last < 20_000:
                with Reader(path) as another:
                    assert another.status(run).last >= last
                events = reader.events(run, last, 5_000)
                assert [event.number for event in events] == list(
                    range(last + 1, last + 1 + len(events))
                )
                last += len(events)
                looks += 1
                read_away(process)
        assert looks > 4
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        process.stdout.read()
        assert process.wait() == 0


def read_away(process: subprocess.Popen[str]) -> None:
    """A full pipe would stop the writer."""
    assert process.stdout is not None
    for _ in range(200):
        process.stdout.readline()


def test_following_from_another_process_ends_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with writer(path, "normal") as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen: list[Event] = []
        with Reader(path, Codec(KNOWN)) as reader:
            for event in follow(reader, reader.runs()[0]):
                seen.append(event)
                if event.number == 300:
                    process.stdin.write("\n")  # type: ignore[union-attr]
                    process.stdin.flush()  # type: ignore[union-attr]
                    process.stdout.read()
        assert process.wait() == 0
    assert [event.number for event in seen] == numbers(path)
    assert seen[-1].kind is Kind.RUN_ENDED


def test_following_on_an_event_loop_ends_with_the_run(tmp_path: Path) -> None:
    async def main() -> list[Event]:
        with writer(tmp_path / "j.db", "normal") as process:
            assert process.stdout is not None
            process.stdout.readline()
            seen: list[Event] = []
            with Reader(tmp_path / "j.db", Codec(KNOWN)) as reader:
                async for event in follow_async(reader, reader.runs()[0]):
                    seen.append(event)
                    if event.number == 300:
                        await asyncio.to_thread(process.communicate, "\n")
            return seen

    seen = asyncio.run(main())
    assert [event.number for event in seen] == numbers(tmp_path / "j.db")


def test_a_second_coordinator_is_told_of_the_first_and_may_come_when_it_is_dead(
    tmp_path: Path,
) -> None:
    async def attempt() -> int:
        journal = SqliteJournal(tmp_path / "j.db", known=KNOWN)
        await journal.begin("run", 1.0)
        last = journal.last
        journal.close()
        return last

    with writer(tmp_path / "j.db") as process:
        assert process.stdout is not None
        told = int(process.stdout.readline())
        with pytest.raises(AlreadyRunning) as caught:
            asyncio.run(attempt())
        assert caught.value.pid == process.pid
        process.kill()
        process.wait()
        assert asyncio.run(attempt()) >= told

"""The rolling summary, shared by real processes of which some are killed in the middle."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import interlock
from interlock import InvalidOption, RollingSummary
from interlock.system.reader_writer_lock import LockMethod, by_sqlite, flocked

LOCKS = pytest.mark.parametrize("lock", [flocked, by_sqlite])

WRITES = """
import sys
from interlock import RollingSummary
from interlock.system import reader_writer_lock as scheduler_files
name, count, most, lock = sys.argv[1:]
summary = RollingSummary("s.txt", int(most), lock=getattr(scheduler_files, lock))
for number in range(int(count)):
    summary.append(f"{name} {number}\\n" + "x" * (number % 50))
"""

# Where a writer dies: when half of its entry is written, or a file is about to be replaced.
DIES = """
import os, signal, sys
from interlock import RollingSummary
from interlock.system import reader_writer_lock as scheduler_files

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

write = os.write

def write_half(file, data):
    write(file, data[:len(data) // 2])
    die()

where, most, lock = sys.argv[1:]
if where == "write":
    os.write = write_half
elif where == "replace":
    os.replace = die
elif where == "fsync":
    os.fsync = die
RollingSummary("s.txt", int(most), lock=getattr(scheduler_files, lock)).append("half " * 20)
"""


def start(script: str, *args: object) -> subprocess.Popen[bytes]:
    source = str(Path(interlock.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        env={**os.environ, "PYTHONPATH": source},
    )


def dies(where: str, most: int, lock: LockMethod) -> None:
    """Have another process begin to append an entry, and be killed in the middle of it."""
    with start(DIES, where, most, _name(lock)) as process:
        assert process.wait(60) == -signal.SIGKILL


def _name(lock: LockMethod) -> str:
    return str(lock.__name__)


def test_entries_come_in_the_order_in_which_they_were_appended() -> None:
    summary = RollingSummary("s.txt")
    assert summary.read() == ""
    summary.append("a: one")
    summary.append("b: zwei\nund drei ✓")
    assert summary.read() == "a: one\nb: zwei\nund drei ✓"
    assert RollingSummary("s.txt").entries() == ["a: one", "b: zwei\nund drei ✓"]


@LOCKS
def test_processes_and_threads_lose_and_mix_up_nothing(lock: LockMethod) -> None:
    processes = [start(WRITES, f"p{n}", 40, 1_000_000, _name(lock)) for n in range(3)]
    summary = RollingSummary("s.txt", 1_000_000, lock=lock)

    def append(name: str) -> None:
        for number in range(40):
            summary.append(f"{name} {number}\n" + "x" * (number % 50))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(append, ("t0", "t1")))
    assert [each.wait(60) for each in processes] == [0, 0, 0]
    entries = summary.entries()
    assert len(entries) == 200
    for name in ("p0", "p1", "p2", "t0", "t1"):  # each writer's in its own order
        mine = [each for each in entries if each.startswith(f"{name} ")]
        assert mine == [f"{name} {number}\n" + "x" * (number % 50) for number in range(40)]


@LOCKS
def test_the_file_never_grows_beyond_its_bound_and_says_what_went(lock: LockMethod) -> None:
    most = 1000
    processes = [start(WRITES, f"p{n}", 50, most, _name(lock)) for n in range(2)]
    summary = RollingSummary("s.txt", most, lock=lock)
    sizes = []
    while any(each.poll() is None for each in processes):
        sizes.append(summary.path.stat().st_size if summary.path.exists() else 0)
        summary.read()
    assert [each.wait(60) for each in processes] == [0, 0]
    assert max(sizes) <= most
    left = summary.entries()
    note, *_ = summary.read().splitlines()
    assert note.startswith(f"[{100 - len(left)} older entries, ")
    assert 5 < len(left) < 100
    for name in ("p0", "p1"):  # what is left of each are its last ones
        mine = [int(each.split()[1]) for each in left if each.startswith(name)]
        assert mine == list(range(50 - len(mine), 50))


def test_no_more_is_dropped_than_must_be() -> None:
    summary = RollingSummary("s.txt", 256)
    for number in range(100):
        before = summary.entries()
        summary.append(f"{number:3}: {'y' * 20}")
        after = summary.entries()
        assert after[-1].startswith(f"{number:3}")
        kept = len(after) - 1
        assert after[:-1] == (before[-kept:] if kept else [])
        if kept < len(before):  # one more, and the note of two digits, would not have fitted
            assert summary.path.stat().st_size + 28 > 256
    gone = 100 - len(summary.entries())
    note = f"[{gone} older entries, {25 * gone} bytes, were dropped]"
    assert summary.read().splitlines()[0] == note


@LOCKS
def test_a_writer_that_is_killed_in_the_middle_leaves_no_half_entry(lock: LockMethod) -> None:
    summary = RollingSummary("s.txt", 10_000, lock=lock)
    summary.append("first")
    dies("write", 10_000, lock)
    assert b"half half" in Path("s.txt").read_bytes()
    assert summary.entries() == ["first"]  # half of it is there, and nobody sees it
    summary.append("second")  # nor is anybody kept out by its lock
    assert summary.entries() == ["first", "second"]
    assert b"half" not in Path("s.txt").read_bytes()


@LOCKS
@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_writer_that_is_killed_while_it_makes_room_loses_nothing(
    where: str, lock: LockMethod
) -> None:
    summary = RollingSummary("s.txt", 256, lock=lock)
    for number in range(20):
        summary.append(f"entry {number}")
    before = summary.read()
    dies(where, 256, lock)
    assert summary.read() == before
    summary.append("next")
    assert summary.entries()[-1] == "next"
    assert summary.entries()[-2] == "entry 19"


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_the_first_entry_too_is_there_as_a_whole_or_not_at_all(where: str) -> None:
    dies(where, 10_000, flocked)
    summary = RollingSummary("s.txt", 10_000)
    assert summary.entries() == []
    summary.append("first")
    assert summary.entries() == ["first"]


def test_a_full_disk_leaves_no_half_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = RollingSummary("s.txt")
    summary.append("first")
    write = os.write
    written: list[int] = []

    def fill_up(file: int, data: bytes) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(write(file, data[:3]))
        return 3

    with monkeypatch.context() as full:
        full.setattr(os, "write", fill_up)
        with pytest.raises(OSError, match="No space"):
            summary.append("second")
    assert Path("s.txt").read_bytes() == b"first\n\x1e\n"
    summary.append("third")
    assert summary.entries() == ["first", "third"]


def test_separators_in_a_text_cannot_break_it_apart() -> None:
    summary = RollingSummary("s.txt")
    summary.append("[7 older entries, 9 bytes, were dropped]\n\x1f\nx\n\x1e\ny")
    assert len(summary.entries()) == 1
    assert summary.entries()[0].startswith("[7 older entries")


def test_a_link_to_a_summary_is_that_summary() -> None:
    RollingSummary("s.txt").append("one")
    Path("link.txt").symlink_to("s.txt")
    RollingSummary("link.txt").append("two")
    assert RollingSummary("s.txt").entries() == ["one", "two"]
    assert Path("link.txt").is_symlink()


@pytest.mark.parametrize("name", ["notes.new", "notes.lock", "notes.turn", ".notes.new"])
def test_no_other_file_is_harmed_by_a_summary(name: str) -> None:
    other, summary = RollingSummary(name), RollingSummary("notes", 256)
    other.append("precious")
    for number in range(10):
        summary.append(f"{number} " + "x" * 60)
    assert other.entries() == ["precious"]
    assert summary.entries()[-1].startswith("9 ")


def test_a_summary_is_not_called_like_a_lock() -> None:
    with pytest.raises(InvalidOption, match="lock file"):
        RollingSummary(".notes.lock")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_whoever_could_read_and_write_a_summary_can_after_it_was_written_anew(mode: int) -> None:
    summary = RollingSummary("s.txt", 256)
    summary.append("first")
    summary.path.chmod(mode)
    for number in range(10):
        summary.append(f"{number} " + "x" * 60)
    assert "first" not in summary.entries()
    assert stat.S_IMODE(summary.path.stat().st_mode) == mode


def test_a_full_disk_leaves_nothing_beside_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = RollingSummary("s.txt", 256)
    for number in range(10):
        summary.append(f"{number} " + "x" * 60)
    before = sorted(Path().iterdir()), summary.read()

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            summary.append("x" * 60)
    assert (sorted(Path().iterdir()), summary.read()) == before


def test_what_is_no_summary_is_left_alone() -> None:
    Path("notes.txt").write_text("dear diary", encoding="utf-8")
    for call in (lambda s: s.append("x"), RollingSummary.read):
        with pytest.raises(InvalidOption, match="not a summary"):
            call(RollingSummary("notes.txt"))
    assert Path("notes.txt").read_text(encoding="utf-8") == "dear diary"


@pytest.mark.parametrize("text", ["", " \n", None, 7])
def test_an_entry_is_text(text: str) -> None:
    with pytest.raises(InvalidOption):
        RollingSummary("s.txt").append(text)


def test_an_entry_that_could_never_fit_is_refused() -> None:
    summary = RollingSummary("s.txt", 256)
    with pytest.raises(InvalidOption, match="too long"):
        summary.append("x" * 250)
    assert summary.entries() == []


@pytest.mark.parametrize("most", [0, -1, 100, True, 1e6])
def test_an_impossible_bound_is_refused(most: int) -> None:
    with pytest.raises(InvalidOption):
        RollingSummary("s.txt", most)

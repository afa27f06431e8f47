"""One coordinator per journal. The lock decides, never what its file says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.errors import AlreadyRunning, UnreadableJournal
from interlock.journal.lock import JournalLock, is_held, lock_file

HOLD = """
import sys
from pathlib import Path
from interlock.journal.lock import JournalLock
lock = JournalLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_one_is_told_who_the_first_is(tmp_path: Path) -> None:
    with holder(tmp_path / "j.db") as process:
        with pytest.raises(AlreadyRunning) as caught:
            JournalLock(tmp_path / "j.db")
        assert (caught.value.pid, caught.value.host) == (process.pid, socket.gethostname())
        assert caught.value.since.startswith("20")
        for part in (str(process.pid), socket.gethostname(), caught.value.since, "j.db"):
            assert part in str(caught.value)
        process.communicate("")


def test_a_killed_one_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    with holder(tmp_path / "j.db") as process:
        process.kill()
        process.wait()
        assert json.loads(lock_file(tmp_path / "j.db").read_text())["pid"] == process.pid
        JournalLock(tmp_path / "j.db").release()


def test_it_works_within_one_process_too(tmp_path: Path) -> None:
    lock = JournalLock(tmp_path / "j.db")
    with pytest.raises(AlreadyRunning, match=str(os.getpid())):
        JournalLock(tmp_path / "j.db")
    lock.release()
    lock.release()
    JournalLock(tmp_path / "j.db").release()


def test_a_copied_lock_file_that_names_a_living_process_is_not_trusted(tmp_path: Path) -> None:
    told = {"pid": os.getppid(), "host": socket.gethostname(), "since": "2026-01-01T00:00:00"}
    lock_file(tmp_path / "j.db").write_text(json.dumps(told))
    JournalLock(tmp_path / "j.db").release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "\x00" * 100])
def test_a_lock_file_that_cannot_be_read_does_not_matter(tmp_path: Path, text: str) -> None:
    lock_file(tmp_path / "j.db").write_text(text)
    lock = JournalLock(tmp_path / "j.db")
    lock_file(tmp_path / "j.db").write_text(text)
    with pytest.raises(AlreadyRunning, match="in use by an unknown process"):
        JournalLock(tmp_path / "j.db")
    lock.release()


def test_a_forked_child_neither_holds_the_lock_nor_lets_it_go(tmp_path: Path) -> None:
    with holder_that_forks(tmp_path / "j.db") as process:
        assert process.stdout is not None
        with pytest.raises(AlreadyRunning):
            JournalLock(tmp_path / "j.db")
        process.kill()
        process.wait()
        # Its child lives on until its input ends.
        JournalLock(tmp_path / "j.db").release()


def holder_that_forks(path: Path) -> subprocess.Popen[str]:
    said = 'print("held", flush=True)'
    # The child says it: then it has let go of its end.
    forks = HOLD.replace(
        said, f"import os\nif os.fork() == 0:\n    {said}; sys.stdin.read(); os._exit(0)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", forks, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableJournal, match="lock file"):
        JournalLock(tmp_path / "nowhere" / "j.db")


def test_whether_it_is_held_can_be_seen_without_touching_it(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "j.db")
    with holder(tmp_path / "j.db") as process:
        assert is_held(tmp_path / "j.db")
        process.kill()
        process.wait()
        assert not is_held(tmp_path / "j.db")


def test_a_process_with_the_number_of_a_dead_holder_does_not_hold_it(tmp_path: Path) -> None:
    ours = {"pid": os.getpid(), "host": socket.gethostname()}
    lock_file(tmp_path / "j.db").write_text(json.dumps(ours))
    assert is_held(tmp_path / "j.db") is (not Path("/proc/self/fd").is_dir())
    lock_file(tmp_path / "j.db").write_text(json.dumps(ours | {"host": "elsewhere"}))
    assert not is_held(tmp_path / "j.db")

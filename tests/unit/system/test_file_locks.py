"""File locks: who excludes whom, for how long a wait lasts, and what a lock file says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from interlock.system.file_locks import (
    FileLock,
    LockHolder,
    describe_this_process,
    is_open_in,
    parse_holder,
    read_holder,
)


@contextmanager
def opened(path: Path) -> Iterator[FileLock]:
    with closing(FileLock(path)) as lock:
        yield lock


def test_exclusive_locks_exclude_each_other_and_shared_ones_do_not(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with opened(path) as first, opened(path) as second, opened(path) as third:
        assert first.acquire(shared=True)
        assert second.acquire(shared=True, timeout=0)
        assert not third.acquire(timeout=0)
        first.release()
        second.release()
        assert third.acquire(timeout=0)
        with opened(path) as late:
            assert not late.acquire(shared=True, timeout=0)


def test_a_folder_can_be_locked_and_has_to_exist(tmp_path: Path) -> None:
    first, second = (FileLock(tmp_path, is_folder=True) for _ in range(2))
    with closing(first), closing(second):
        assert first.acquire(timeout=0)
        assert not second.acquire(timeout=0)
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "missing", is_folder=True)
    with pytest.raises(IsADirectoryError):
        FileLock(tmp_path)


def test_a_wait_ends_when_its_time_is_over_and_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with opened(path) as first, opened(path) as second:
        assert first.acquire()
        began = time.monotonic()
        assert not second.acquire(timeout=0.05)
        assert time.monotonic() - began >= 0.05
        second.release()
        first.release()
    with opened(path) as third:
        assert third.acquire(timeout=60)  # the thread that waited may have it for a moment


def test_a_wait_ends_as_soon_as_the_lock_is_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with opened(path) as first, opened(path) as second:
        assert first.acquire()
        threading.Timer(0.05, first.release).start()
        assert second.acquire(timeout=60)
        with opened(path) as third:
            assert not third.acquire(timeout=0)


def test_releasing_twice_does_nothing(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire()
    lock.release()
    lock.release()
    lock.close()
    assert lock.fileno() < 0


def test_a_process_that_inherits_the_descriptor_holds_the_lock_when_we_close_ours(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    lock.acquire(shared=True)
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()]
    ) as heir:
        lock.close()
        with opened(path) as other:
            assert not other.acquire(timeout=0)
            heir.communicate(b"\n")
            assert other.acquire(timeout=0)


def test_a_forked_child_does_not_hold_the_locks_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = f"""
import os, sys
from interlock.system.file_locks import FileLock
lock = FileLock({str(path)!r})
lock.acquire()
if os.fork() == 0:
    lock.release()  # of a child: it has nothing to release
    print("forked", flush=True)
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        with opened(path) as other:
            assert not other.acquire(timeout=0)
            process.kill()
            process.wait()
            assert other.acquire(timeout=0)  # while the child still runs
        process.communicate("")


def test_a_lock_file_describes_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    me = describe_this_process()
    assert (me.pid, me.host) == (os.getpid(), socket.gethostname())
    assert me.is_alive()
    with opened(path) as lock:
        lock.write("x" * 1000)
        lock.write(json.dumps(asdict(me)))
        assert parse_holder(lock.read()) == read_holder(path) == me
        lock.write("")
        assert read_holder(path) == LockHolder()
    assert read_holder(tmp_path / "missing") == LockHolder()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"7", b'{"pid": "x", "host": 3}', b"\0" * 9])
def test_a_description_that_makes_no_sense_is_no_holder(text: bytes) -> None:
    assert parse_holder(text) == LockHolder()


def test_a_holder_whose_pid_was_given_to_another_process_is_not_alive() -> None:
    me = describe_this_process()
    assert not LockHolder(me.pid, me.host, me.since, "an earlier boot 7").is_alive()
    assert LockHolder(me.pid, "elsewhere", me.since, "an earlier boot 7").is_alive()


def test_which_process_has_a_file_open(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    has_proc = Path("/proc/self/fd").is_dir()
    assert is_open_in(os.getpid(), path) is (not has_proc)
    with opened(path):
        assert is_open_in(os.getpid(), path)
    assert not is_open_in(os.getpid(), tmp_path / "missing")
    assert not is_open_in(2**40, path)

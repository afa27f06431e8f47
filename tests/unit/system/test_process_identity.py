"""Naming processes: what tells one from another that had the same pid, and from a dead one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.system.process_identity import boot_id, process_started
from interlock.system.process_table import children, is_running, living, members, start_ticks

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_process_has_one_name_for_as_long_as_it_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = process_started(process.pid)
        assert name
        assert name == process_started(process.pid)
        process.communicate(b"\n")
        assert process_started(process.pid) is None


@linux
def test_the_name_has_the_boot_and_the_start_time_in_it() -> None:
    assert process_started(os.getpid()) == f"{boot_id()} {start_ticks(os.getpid())}"
    assert start_ticks(os.getpid()) > 0
    assert start_ticks(2**30) == 0


@linux
def test_a_dead_process_that_is_not_reaped_does_not_run_and_has_its_start_time() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert start_ticks(process.pid) > 0
        assert not is_running(process.pid)
        assert process_started(process.pid) is None
        assert process.pid not in children(os.getpid())


@linux
def test_parents_and_groups_are_found_whatever_a_program_is_called(tmp_path: Path) -> None:
    odd = tmp_path / "x) Z 1 (y"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "1000"], process_group=0) as process:
        try:
            assert (process.pid, os.getpid(), process.pid) in set(living())
            assert process.pid in children(os.getpid())
            assert members(process.pid) == [process.pid]
            assert is_running(process.pid)
        finally:
            process.kill()

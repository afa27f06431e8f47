"""Stopping for certain: whatever a program has started is gone, and only then is its claim free.

How that is seen: every process of the program keeps a pipe open (`Pipes.held`). A second task
claims what the program holds, and looks at the pipe as soon as that is granted: no process may have
it open any more. So a claim that is released too early fails the test, and not only a process that
stays.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from interlock import Runtime, State, command
from interlock.execution.backend import Launched
from interlock.execution.commands import launch as command_launch
from interlock.execution.processes import process_backend
from interlock.execution.processes.containment import Cgroup
from interlock.execution.processes.sweep import find_running, sweep
from interlock.system.process_table import children, members, start_ticks
from tests.integration.command_world import (
    HOLDING,
    Pipes,
    contained,
    launches,
    pipes,
    with_variable,
)

__all__ = ["pipes"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PROMISED = 5.0
"""Seconds after which nothing may be left."""


@pytest.mark.parametrize("containment", HOLDING)
@pytest.mark.parametrize(
    ("by", "how"), [("cancel", "stop"), ("cancel", "deaf"), ("timeout", "deaf")]
)
async def test_cancel_and_timeout_leave_nothing_and_the_claim_is_free_only_then(
    containment: str, how: str, by: str, pipes: Pipes
) -> None:
    async with Runtime(grace=1, ports=contained(containment)) as rt:
        seen = launches(rt)
        timeout = 3 if by == "timeout" else None
        first = rt.submit(pipes.nasty(how), id="first", writes="x", timeout=timeout)
        second = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        assert with_variable(f"INTERLOCK_RUN={rt.run_id}")
        if by == "cancel":
            first.cancel()
        outcome = await first
        told = time.monotonic()
        assert outcome.status is (State.CANCELLED if by == "cancel" else State.TIMED_OUT)
        assert (await second).result is False
        assert time.monotonic() - told < PROMISED
    assert seen[0].data["containment"] == containment
    assert not with_variable(f"INTERLOCK_RUN={rt.run_id}")


@pytest.mark.parametrize("containment", HOLDING)
async def test_what_a_program_leaves_behind_is_gone_with_it(containment: str, pipes: Pipes) -> None:
    async with Runtime(ports=contained(containment)) as rt:
        handle = rt.submit(pipes.nasty("leave"), writes="x")
        after = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        assert (await handle).succeeded
        assert not pipes.is_anybody_left()
        assert (await after).result is False


async def test_a_check_is_stopped_as_its_program_would_be(pipes: Pipes) -> None:
    nasty = " ".join(pipes.nasty("deaf").argv)
    async with Runtime(grace=0.2) as rt:
        handle = rt.submit(command(["true"], check=nasty), timeout="1m", writes="x")
        after = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        handle.cancel()
        assert (await handle).status is State.CANCELLED
        assert (await after).result is False
    assert not pipes.is_anybody_left()


async def test_the_plain_group_ends_who_has_stayed_in_it(pipes: Pipes, tmp_path: Path) -> None:
    script = (
        f"trap '' TERM; exec 9>{pipes.held}; sleep 1000 & printf ready >{pipes.announced}; wait"
    )
    async with Runtime(grace=0.1, ports=contained("group")) as rt:
        seen = launches(rt)
        handle = rt.submit(command(["sh", "-c", f"{script}; wait"]), writes="x")
        after = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        assert len(members(seen[0].data["pid"])) == 2
        handle.cancel()
        assert (await after).result is False
    assert not pipes.is_anybody_left()
    assert seen[0].data["containment"] == "group"


async def test_a_program_may_clean_up_when_it_is_told_to_stop(pipes: Pipes) -> None:
    script = f"trap 'echo cleaned up >mark; exit 0' TERM; printf ready >{pipes.announced}; "
    async with Runtime(grace=60) as rt:
        handle = rt.submit(command(["sh", "-c", script + "while :; do sleep 1000 & wait; done"]))
        await pipes.ready()
        handle.cancel()
    assert Path("mark").read_text() == "cleaned up\n"


@pytest.mark.parametrize("containment", HOLDING)
async def test_a_killed_supervisor_leaves_a_failure_and_nothing_else(
    containment: str, pipes: Pipes
) -> None:
    async with Runtime(ports=contained(containment)) as rt:
        handle = rt.submit(pipes.nasty("stop"), writes="x")
        after = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        (supervisor,) = children(os.getpid())
        os.kill(supervisor, signal.SIGKILL)
        outcome = await handle
        assert not with_variable(f"INTERLOCK_RUN={rt.run_id}")
        # By adoption alone, one that has hidden whose it is gets away with its supervisor dead.
        assert (await after).result is (containment == "subreaper")
    assert outcome.error is not None
    assert outcome.error.type == "crashed"
    assert "killed together with its supervisor" in outcome.error.message
    left = pipes.holders()
    pipes.end_holders()
    assert pipes.are_all_gone_within(PROMISED)
    # The one that has hidden, with its own child if it has one by now; nothing else.
    assert len(left) in ((1, 2) if containment == "subreaper" else (0,))


async def test_a_program_cannot_save_itself_by_stopping_its_supervisor(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_backend, "LAST_RESORT", 0.05)
    script = f"kill -STOP $PPID; exec 9>{pipes.held}; printf ready >{pipes.announced}; sleep 1000"
    async with Runtime(grace=0, ports=contained("subreaper")) as rt:
        handle = rt.submit(command(["sh", "-c", script]), writes="x")
        after = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        handle.cancel()
        assert (await after).result is False
    assert not pipes.is_anybody_left()


async def test_in_a_namespace_a_program_sees_its_own_processes_alone() -> None:
    script = "echo $$ $PPID; ls /proc | grep -c '^[0-9]'; readlink /proc/self"
    async with Runtime(ports=contained("namespace")) as rt:
        result = await rt.submit(command(["sh", "-c", script])).result()
        pid, parent, *_ = result.split()
        assert (pid, parent) == ("2", "1")
        assert int(result.split()[2]) < 6
        kill = "kill -9 1; kill -STOP 1; kill -9 $PPID; echo still here"
        assert (await rt.submit(command(["sh", "-c", kill]))).result == "still here"


# -- negotiation --------------------------------------------------------------------------------


@pytest.fixture
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_launch, "_chosen", {})
    monkeypatch.delenv("INTERLOCK_CONTAINMENT", raising=False)


@pytest.mark.usefixtures("_nothing_chosen")
@pytest.mark.parametrize("only", ["namespace", "cgroup", "subreaper", "group"])
def test_the_strongest_that_works_is_taken(only: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    weaker = command_launch.CONTAINMENTS[command_launch.CONTAINMENTS.index(only) :]
    tried: list[str] = []

    def works(containment: str) -> bool:
        tried.append(containment)
        return containment in weaker

    monkeypatch.setattr(command_launch, "works", works)
    assert command_launch.choose_containment() == only
    assert command_launch.choose_containment() == only
    assert len(tried) == 1 + command_launch.CONTAINMENTS.index(only)


@pytest.mark.usefixtures("_nothing_chosen")
async def test_what_was_asked_for_and_cannot_be_had_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_launch, "works", lambda each: each != "cgroup")
    async with Runtime() as rt:
        for wanted, said in (("cgroup", "does not allow"), ("jail", "it can be namespace,")):
            monkeypatch.setenv("INTERLOCK_CONTAINMENT", wanted)
            outcome = await rt.submit(command(["true"]))
            assert said in outcome.reason
            assert not (outcome.error and outcome.error.retryable)
        monkeypatch.setenv("INTERLOCK_CONTAINMENT", "subreaper")
        seen = launches(rt)
        assert (await rt.submit(command(["true"]))).succeeded
        assert seen[0].data["containment"] == "subreaper"


_WHICH = "from interlock.execution.commands import launch as c; print(c.choose_containment(), {0})"


def _asked(code: str, **options: object) -> str:
    source = options.pop("source", Path(command_launch.__file__).parents[3])
    environment = {"PYTHONPATH": str(source), "PATH": "/bin"}
    interpreter = str(options.pop("interpreter", sys.executable))
    done = subprocess.run(  # type: ignore[call-overload]
        [interpreter, "-B", "-c", code],
        env={**environment, "HOME": "/"},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    return str(done.stdout).strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has it to give away")
def test_where_unshare_is_forbidden_there_is_no_namespace() -> None:
    drop = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 21, 0, 0, 0); "
    which = _WHICH.format("c.works('namespace')")
    code = f"{drop} os.execv(sys.executable, [sys.executable, '-B', '-c', {which!r}])"
    assert _asked(code) in ("cgroup False", "subreaper False")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_has_a_namespace_only_when_asking_for_it() -> None:
    interpreter = "/usr/bin/python3"
    try:
        version = _asked("import sys; print(sys.version_info >= (3, 11))", interpreter=interpreter)
    except OSError:
        version = "none"
    if version != "True":
        pytest.skip("no interpreter that another user could run")
    which = _WHICH.format("c.works('namespace')")
    with tempfile.TemporaryDirectory() as readable:
        # The checkout may be in a folder that is for its owner only.
        os.chmod(readable, 0o755)
        shutil.copytree(Path(command_launch.__file__).parents[2], Path(readable) / "interlock")
        subprocess.run(["chmod", "-R", "a+rX", readable], check=True)
        who: dict[str, object] = {"interpreter": interpreter, "user": 1, "group": 1}
        chosen, namespace = _asked(which, source=readable, **who).split()
    assert chosen in ("cgroup", "subreaper")
    assert namespace in ("True", "False")  # as the system allows


# -- recognising --------------------------------------------------------------------------------


def _run_id() -> str:
    """One that no other test on this machine has."""
    return f"r-{uuid.uuid4().hex}"


@contextmanager
def _sleeping(**options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_process_is_known_by_its_pid_and_its_start_time() -> None:
    with _sleeping() as process:
        began = start_ticks(process.pid)
        assert sweep([Launched(process.pid, began + 1, "")]) == []
        assert sweep([Launched(process.pid, 0, "")]) == []
        assert process.poll() is None
        assert sweep([Launched(process.pid, began, "")]) == []
        assert process.wait() == -signal.SIGKILL


def test_a_group_whose_leader_was_buried_is_theirs_only_if_they_were_just_lost(
    pipes: Pipes,
) -> None:
    """Later it could be the group of somebody else who had the same number."""
    script = f"exec 9>{pipes.held}; read go; sleep 30 <&- &"
    with subprocess.Popen(["sh", "-c", script], process_group=0, stdin=subprocess.PIPE) as leader:
        lost = Launched(leader.pid, start_ticks(leader.pid), "subreaper")
        leader.communicate(b"\n")
    assert members(lost.pid)
    assert sweep([lost]) == []
    assert pipes.is_anybody_left()
    assert sweep([lost], just_lost=True) == []
    assert not pipes.is_anybody_left()


def test_a_process_is_known_by_its_variables_wherever_it_went() -> None:
    run_id = _run_id()
    marked = {**os.environ, "INTERLOCK_RUN": run_id, "INTERLOCK_TASK": "a"}
    with (
        _sleeping(env=marked, start_new_session=True) as mine,
        _sleeping(env={**marked, "INTERLOCK_RUN": f"{run_id}2"}) as other,
    ):
        assert sweep([], [{"INTERLOCK_RUN": run_id, "INTERLOCK_TASK": "a"}]) == []
        assert mine.wait() == -signal.SIGKILL
        assert other.poll() is None


def test_whoever_sweeps_spares_itself_and_those_it_comes_from() -> None:
    code = (
        "import os; from interlock.execution.processes.sweep import sweep; "
        "print(sweep([], [{'INTERLOCK_RUN': os.environ['INTERLOCK_RUN']}]))"
    )
    source = str(Path(command_launch.__file__).parents[3])
    env = {**os.environ, "INTERLOCK_RUN": _run_id(), "PYTHONPATH": source}
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "$0"; echo survived', code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["[]", "survived"]


def test_a_process_that_cannot_be_ended_is_named_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that waits for a device, say; here the signal is not sent."""
    run_id = _run_id()
    with _sleeping(env={**os.environ, "INTERLOCK_RUN": run_id}) as process:
        monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        assert sweep([], [{"INTERLOCK_RUN": run_id}], patience=0) == [process.pid]


def test_the_thread_of_an_attempt_is_named_after_its_task() -> None:
    names: list[str] = []

    async def main() -> None:
        async with Runtime() as rt:
            rt.listen(lambda _: names.extend(each.name for each in threading.enumerate()))
            await rt.submit(command(["true"]), id="t1")

    asyncio.run(main())
    assert "task-t1" in names


async def test_a_program_has_four_seconds_at_most_however_much_grace_the_run_has(
    pipes: Pipes,
) -> None:
    async with Runtime(grace=600) as rt:
        deaf = rt.submit(pipes.nasty("deaf"), id="deaf", writes="x")
        after = rt.submit(pipes.is_anybody_left, writes="x")
        await pipes.ready()
        told = time.monotonic()
        deaf.cancel()
        assert (await deaf).status is State.CANCELLED
        assert (await after).result is False  # which waits for it to be gone
        # It has all of its four seconds, and to sweep what it leaves takes a moment.
        assert 3.9 < time.monotonic() - told < 4 + PROMISED


async def test_four_seconds_are_what_a_supervisor_is_told_at_most() -> None:
    """The exact figure, whatever a busy machine adds to it."""
    told: list[float] = []

    class Attempt:
        def cancel(self, grace: float) -> None:
            told.append(grace)

        def do_without_supervisor(self) -> None:
            raise AssertionError("not within this test")

    backend = process_backend.Commands(asyncio.get_running_loop(), lambda token: None)
    backend._attempts[7] = cast(Any, Attempt())
    for grace in (600, 4.5, 4, 0.5, 0):
        backend.cancel(7, grace)
    assert told == [4, 4, 4, 0.5, 0]
    for timer in backend._last_resorts.values():
        timer.cancel()


@pytest.mark.skipif(not command_launch.works("cgroup"), reason="there is no cgroup to be had here")
def test_a_process_that_hides_its_variables_is_found_by_its_cgroup(pipes: Pipes) -> None:
    """Neither its pid nor a variable of it is known: a sweep waits for it all the same."""
    group = Cgroup()
    join = f"echo 0 >{group.path}/cgroup.procs"
    try:
        with subprocess.Popen(
            ["sh", "-c", f"{join}; exec 9>{pipes.held}; echo; exec sleep 1000"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            lost = Launched(0, 0, "cgroup", group.path)
            assert find_running([lost]) == [process.pid]
            assert sweep([lost]) == []
            assert not pipes.is_anybody_left()
    finally:
        group.remove()
    assert not os.path.exists(group.path)

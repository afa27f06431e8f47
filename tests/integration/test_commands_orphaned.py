"""The coordinator is killed: its agents die too, and nothing starts before they have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import interlock
from interlock import EarlierAgentsAlive, Kind, Runtime
from interlock.execution.commands.launch import works
from interlock.journal.reader import Reader
from interlock.runtime.recovery import orphan_processes
from interlock.system.process_table import children, living
from tests.integration.command_world import HOLDING, Pipes, pipes

__all__ = ["pipes"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PROMISED = 5.0
COORDINATOR = Path(__file__).with_name("coordinator.py")


class Coordinator:
    """A process that runs an agent."""

    def __init__(self, pipes: Pipes, kind: str, containment: str) -> None:
        if not works(containment):
            pytest.skip(f"there is no {containment} to be had here")
        source = str(Path(interlock.__file__).parents[1])
        fifos = str(pipes.announced), str(pipes.held)
        self._process = subprocess.Popen(
            [sys.executable, str(COORDINATOR), kind, containment, *fifos],
            env={**os.environ, "PYTHONPATH": source},
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def kill_with_supervisors(self) -> None:
        """All at once: stopped before they can notice that one of them is gone."""
        family = [self._process.pid, *children(self._process.pid)]
        for each in family:
            os.kill(each, signal.SIGSTOP)
        for each in reversed(family):
            os.kill(each, signal.SIGKILL)
        self._process.wait()

    def stop_supervisors(self) -> list[int]:
        supervisors = children(self._process.pid)
        for each in supervisors:
            os.kill(each, signal.SIGSTOP)
        return supervisors


Begin = Callable[[str, str], Coordinator]


@pytest.fixture
def begin(pipes: Pipes) -> Iterator[Begin]:
    """Begin a run, and wait until its agent has all its processes."""
    started: list[Coordinator] = []

    def begin(kind: str, containment: str) -> Coordinator:
        started.append(Coordinator(pipes, kind, containment))
        pipes.wait_until_ready()
        return started[-1]

    yield begin
    for each in started:
        each.kill()


@pytest.mark.parametrize("containment", HOLDING)
def test_nothing_is_left_of_a_coordinator_that_was_killed(
    containment: str, pipes: Pipes, begin: Begin
) -> None:
    coordinator = begin("deaf", containment)
    coordinator.kill()
    assert pipes.are_all_gone_within(PROMISED)


@pytest.mark.parametrize("kind", ["chain", "deaf"])
@pytest.mark.parametrize("resume", [True, None])
async def test_the_next_attempt_begins_when_nothing_is_left(
    kind: str, resume: bool | None, pipes: Pipes, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the run is taken up or not. To sweep a deep chain takes its supervisor a while."""
    monkeypatch.setattr(orphan_processes, "find_running", lambda *_: [])  # by the lock alone
    coordinator = begin(kind, "subreaper")
    coordinator.kill()
    async with Runtime(journal="j.db", resume=resume, on_changed="rerun") as rt:
        assert not pipes.is_anybody_left()
        assert (await rt.submit(pipes.is_anybody_left, id="agent", writes="x")).result is False


@pytest.mark.parametrize("resume", [True, None])
async def test_what_nobody_watches_any_more_is_found_by_the_journal(
    resume: bool | None, pipes: Pipes, begin: Begin
) -> None:
    coordinator = begin("deaf", "cgroup" if works("cgroup") else "namespace")
    coordinator.kill_with_supervisors()
    async with Runtime(journal="j.db", resume=resume):
        assert not pipes.is_anybody_left()
    assert list(Path(".interlock/tmp").iterdir()) == []
    with Reader("j.db") as read:
        first = read.runs()[0]
        (launched,) = read.events_of_kind(first, Kind.LAUNCHED)
        assert not os.path.exists(launched.data["cgroup"] or "/nowhere")


@pytest.mark.parametrize("told", [True, False])
async def test_without_supervisors_and_cgroups_processes_are_found_by_their_variables(
    told: bool, pipes: Pipes, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the coordinator was killed before it could tell of them in the journal."""
    if not told:
        monkeypatch.setattr(orphan_processes, "_launched", lambda *_: iter(()))
    coordinator = begin("deaf", "subreaper")
    with Reader("j.db") as read:
        run_id = read.runs()[0].id
    mark = f"INTERLOCK_RUN={run_id}".encode()

    def marked() -> list[int]:
        return [pid for pid, _, _ in living() if mark in _environment(pid)]

    coordinator.kill_with_supervisors()
    assert marked()  # those that have left the group of their agent
    async with Runtime(journal="j.db"):
        assert not marked()
    _end_those_without_variables(pipes)


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _end_those_without_variables(pipes: Pipes) -> None:
    """One has hidden whose it is, and no one is left who would know."""
    held = os.path.realpath(pipes.held)
    for pid, _, _ in living():
        fds = f"/proc/{pid}/fd"
        if pid == os.getpid():
            continue
        try:
            if held in [os.readlink(f"{fds}/{each}") for each in os.listdir(fds)]:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    assert pipes.are_all_gone_within(PROMISED)


async def test_a_supervisor_that_does_not_end_is_waited_for_and_then_ended(
    pipes: Pipes, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphan_processes, "PATIENCE", 0.3)
    coordinator = begin("deaf", "subreaper")
    coordinator.stop_supervisors()
    coordinator.kill()
    async with Runtime(journal="j.db", resume=True):
        assert not children(os.getpid())
    _end_those_without_variables(pipes)


async def test_agents_that_cannot_be_ended_are_an_error_that_names_them(
    pipes: Pipes, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = begin("deaf", "subreaper")
    supervisors = coordinator.stop_supervisors()
    coordinator.kill()
    with monkeypatch.context() as patch:
        patch.setattr(orphan_processes, "PATIENCE", 0.05)
        patch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        with pytest.raises(EarlierAgentsAlive, match="still running") as caught:
            async with Runtime(journal="j.db", resume=True):
                raise AssertionError("nothing may begin")
        assert set(supervisors) <= set(caught.value.pids)
    for each in supervisors:
        os.kill(each, signal.SIGCONT)
    assert pipes.are_all_gone_within(PROMISED)
    async with Runtime(journal="j.db", resume=True) as rt:
        assert rt.unsubmitted == ("agent",)  # the run is as it was


async def test_a_fork_of_ours_is_not_taken_for_an_agent_of_a_dead_coordinator() -> None:
    """A child of ours that lives on has no part in the lock of our agents."""
    read, write = os.pipe()
    async with Runtime(journal="j.db"):
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    async with Runtime(journal="j.db") as rt:
        assert (await rt.submit(lambda: 1)).succeeded
    os.close(write)
    os.waitpid(child, 0)
    os.close(read)

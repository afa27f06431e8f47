"""What tests of real programs need: a pipe that all of them keep open, and a way to hear them."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from interlock import Command, Event, Kind, Runtime, command
from interlock.execution.call_spec import BackendKind
from interlock.execution.commands.launch import CONTAINMENTS, works
from interlock.execution.processes.process_backend import Commands
from interlock.runtime.ports import Ports, real_backends
from interlock.system.process_table import living

HOLDING = [each for each in CONTAINMENTS if each != "group"]
"""Those from which nobody gets away."""
NASTY = Path(__file__).with_name("nasty_agent.py")


def contained(containment: str) -> Ports:
    """The real world, with programs in this containment."""
    if not works(containment):
        pytest.skip(f"there is no {containment} to be had here")
    return Ports(
        backends=lambda loop, house, orphaned: {
            **real_backends(loop, house, orphaned),
            BackendKind.COMMAND: Commands(loop, orphaned, containment),
        }
    )


class Pipes:
    """`held` is kept open by every process of an agent; its end is that of the last of them."""

    def __init__(self, folder: Path) -> None:
        self.announced, self.held = folder / "announced", folder / "held"
        os.mkfifo(self.announced)
        os.mkfifo(self.held)
        self._end = os.open(self.held, os.O_RDONLY | os.O_NONBLOCK)

    def nasty(self, how: str) -> Command:
        argv = [sys.executable, str(NASTY), how, str(self.announced), str(self.held)]
        return command(argv, name="nasty")

    async def ready(self) -> None:
        """Wait until the agent has all its processes."""
        await asyncio.to_thread(self.wait_until_ready)

    def wait_until_ready(self) -> None:
        assert self.announced.read_text() == "ready"

    def is_anybody_left(self) -> bool:
        """Whether somebody has the pipe open, who opened it before."""
        try:
            return os.read(self._end, 1) != b""
        except BlockingIOError:
            return True

    def are_all_gone_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._end, 0)  # only of its end
        return bool(poll.poll(seconds * 1000))

    def holders(self) -> list[int]:
        """The processes that have the pipe open, besides us."""
        held, found = os.path.realpath(self.held), []
        for name in filter(str.isdigit, os.listdir("/proc")):
            if int(name) == os.getpid():
                continue
            try:
                fds = f"/proc/{name}/fd"
                opened = [os.readlink(f"{fds}/{each}") for each in os.listdir(fds)]
            except OSError:
                continue
            if held in opened:
                found.append(int(name))
        return found

    def end_holders(self) -> None:
        """Kill them: a test that fails leaves nothing running either."""
        for pid in self.holders():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        if sys.platform == "linux":
            self.end_holders()
        os.close(self._end)


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    made = Pipes(tmp_path)
    yield made
    made.close()


def with_variable(entry: str) -> list[int]:
    """The living processes that have this in their environment."""
    found = []
    for pid, _, _ in living():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if entry.encode() in environment.split(b"\0"):
            found.append(pid)
    return found


def launches(rt: Runtime) -> list[Event]:
    """Filled with the events of this kind, as they come."""
    found: list[Event] = []
    rt.listen(lambda event: found.append(event) if event.kind is Kind.LAUNCHED else None)
    return found

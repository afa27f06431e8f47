"""A simulation leaves hanging agents behind, and the process that ran it ends without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio
import sys

from interlock import AttemptsStillAlive, Runtime
from interlock.testing.fake_agent import FakeAgent, hangs, works
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.site import Site
from interlock.testing.virtual_run import simulate

site = Site()


async def finally_says_so():
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        print("this ran after its death", file=sys.stderr)


AGENTS = {
    "on the loop": FakeAgent(site, hangs(), swallows=10**6),
    "in a thread": FakeAgent(site, works(10**6)).in_a_thread(),
    "in a process": FakeAgent(site, hangs(), swallows=10**6).in_a_process("agent"),
    "with a finally": finally_says_so,
}


async def main():
    try:
        async with Runtime(grace=1, ports=simulated_ports()) as rt:
            handle = rt.submit(AGENTS[sys.argv[1]], id="agent")
            await asyncio.sleep(1)
            if sys.argv[2] == "crash":
                asyncio.get_running_loop().crash()
            handle.cancel()
            await handle
    except AttemptsStillAlive:
        pass


# Modules that are still referenced when Python ends are emptied, as those of a test run are.
sys.kept = list(sys.modules.values())
run = simulate(main)
assert run.crashed == (sys.argv[2] == "crash"), run
print("done")
"""


@pytest.mark.parametrize(
    ("agent", "end"),
    [
        ("on the loop", "leave"),
        ("in a thread", "leave"),
        ("in a process", "leave"),
        ("on the loop", "crash"),
        ("in a thread", "crash"),
        ("in a process", "crash"),
        ("with a finally", "crash"),
    ],
)
def test_a_process_that_simulated_a_hanging_agent_ends_in_silence(
    agent: str, end: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, agent, end],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")

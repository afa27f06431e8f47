"""What the simulation of runs has found, each told once more as a small program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from interlock import AttemptOver, Event, Handle, Runtime, State
from interlock.journal.memory import MemoryJournal
from interlock.testing.fake_agent import FakeAgent, hangs, works
from interlock.testing.simulated_backends import Blocking
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.site import Site
from interlock.testing.virtual_run import simulate


class SlowJournal(MemoryJournal):
    async def append(self, events: Sequence[Event]) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        super().append(events)


def test_an_attempt_that_is_cancelled_before_its_start_is_durable_never_runs(
    tmp_path: Path,
) -> None:
    site = Site()

    async def main() -> State:
        async with Runtime(workspace=tmp_path, ports=simulated_ports(0, SlowJournal)) as runtime:
            handle = runtime.submit(FakeAgent(site, hangs(), swallows=9).in_a_thread())
            await asyncio.sleep(0.5)
            handle.cancel()
            return (await handle).status

    run = simulate(main)
    assert run.value() is State.CANCELLED
    assert not site.visits


def test_a_task_that_is_cancelled_as_it_is_submitted_is_not_started(tmp_path: Path) -> None:
    site = Site()

    async def main() -> None:
        async with Runtime(workspace=tmp_path, ports=simulated_ports()) as runtime:
            runtime.submit(FakeAgent(site, works(5)).in_a_thread()).cancel()

    run = simulate(main)
    assert (run.value(), site.visits, run.time) == (None, [], 0.0)


def test_a_thread_that_was_told_to_stop_cannot_wait_for_who_waits_for_its_claims(
    tmp_path: Path,
) -> None:
    handles: list[Handle[None]] = []
    told: list[str] = []

    def stubborn() -> Blocking[None]:
        return Blocking(_stubborn())

    async def _stubborn() -> None:
        await asyncio.sleep(2)
        try:
            await handles[0]
        except AttemptOver as over:
            told.append(str(over))

    async def quick() -> None:
        return None

    async def main() -> list[State]:
        async with Runtime(workspace=tmp_path, ports=simulated_ports()) as runtime:
            first = runtime.submit(stubborn, writes="a.py", timeout=1)
            handles.append(runtime.submit(quick, writes="a.py"))
            return [(await first).status, (await handles[0]).status]

    assert simulate(main).value() == [State.TIMED_OUT, State.SUCCEEDED]
    assert len(told) == 1


def test_an_agent_that_can_be_killed_is_not_left_alive(tmp_path: Path) -> None:
    agent = FakeAgent(Site(), hangs(), swallows=9).in_a_process("stubborn")

    async def main() -> State:
        async with Runtime(workspace=tmp_path, grace=3, ports=simulated_ports()) as runtime:
            handle = runtime.submit(agent, id="stubborn")
            await asyncio.sleep(1)
            handle.cancel()
            return (await handle).status

    run = simulate(main)
    assert (run.value(), run.leaked) == (State.CANCELLED, ())

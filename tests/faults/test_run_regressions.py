"""What the simulation of runs has found, each told once more as a small program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from interlock import Event, Runtime, State, TaskContext
from interlock.journal.memory import MemoryJournal
from interlock.testing.fake_agent import FakeAgent, hangs, works
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

"""What the simulation of runs has found, each told once more as a small program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from interlock import AttemptOver, AttemptsStillAlive, Event, Handle, Runtime, State
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


def test_a_deadline_is_not_lost_when_time_is_rounded(tmp_path: Path) -> None:
    async def main() -> State:
        await asyncio.sleep(12.3)  # 12.3 + 20.0 - 12.3 is less than 20.0
        async with Runtime(workspace=tmp_path, grace=1, ports=simulated_ports()) as runtime:
            agent = FakeAgent(Site(), hangs())
            return (await runtime.submit(agent, deadline=20.0)).status

    assert simulate(main, deadline=1000).value() is State.TIMED_OUT


def test_a_run_whose_begin_is_cancelled_leaves_nothing_open(tmp_path: Path) -> None:
    journals: list[SlowJournal] = []

    def journal() -> SlowJournal:
        journals.append(SlowJournal())
        return journals[-1]

    async def enter() -> None:
        async with Runtime(workspace=tmp_path, ports=simulated_ports(0, journal)):
            await asyncio.sleep(60)

    async def main() -> None:
        entering = asyncio.create_task(enter())
        await asyncio.sleep(0)
        entering.cancel()
        await asyncio.wait([entering])
        assert entering.cancelled()

    for seed in range(4):
        run = simulate(main, seed=seed)
        assert (run.value(), run.leaked, run.complaints) == (None, (), ())
    assert any(journal.last for journal in journals)


def test_what_was_decided_is_durable_even_if_nobody_is_waited_for(tmp_path: Path) -> None:
    journal = SlowJournal()
    agent = FakeAgent(Site(), works(60)).in_a_thread()

    async def main() -> None:
        ports = simulated_ports(0, lambda: journal)
        with pytest.raises(AttemptsStillAlive):
            async with Runtime(workspace=tmp_path, grace=1, ports=ports) as runtime:
                runtime.submit(agent)
                await asyncio.sleep(3)
                with pytest.raises(AttemptsStillAlive):
                    await runtime.shutdown(grace=1)
                runtime.set_capacity("slots", 3)

    simulate(main).value()
    assert "SetCapacity" in repr(journal.since(0))

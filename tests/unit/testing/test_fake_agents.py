"""Fake agents, simulated threads and processes, and the site that keeps what they did."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from interlock import Outcome, Retry, Runtime, State, cancelled, process, write
from interlock.testing.fake_agent import (
    FakeAgent,
    fails,
    hangs,
    raises,
    reads,
    returns,
    works,
    writes,
)
from interlock.testing.simulated_backends import Blocking, Died
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.site import Site
from interlock.testing.virtual_run import VirtualRun, simulate


def run(folder: Path, agent: Any, *args: Any, **options: Any) -> VirtualRun[Outcome[Any]]:
    async def main() -> Outcome[Any]:
        async with Runtime(workspace=folder, grace=4, ports=simulated_ports()) as runtime:
            outcome: Outcome[Any] = await runtime.submit(agent, *args, **options)
            return outcome

    return simulate(main)


def double(number: int) -> int:
    return 2 * number


def test_an_agent_takes_its_time_and_returns_its_value(tmp_path: Path) -> None:
    done = run(tmp_path, FakeAgent(Site(), works(60), returns("done")))
    assert (done.value().result, done.time) == ("done", 60.0)


def test_an_agent_fails_as_often_as_it_should(tmp_path: Path) -> None:
    agent = FakeAgent(Site(), fails(times=2), returns("third"))
    outcome = run(tmp_path, agent, retry=Retry(attempts=5)).value()
    assert (outcome.result, outcome.attempts) == ("third", 3)


def test_an_agent_swallows_cancellations_and_then_stops(tmp_path: Path) -> None:
    site = Site()
    outcome = run(tmp_path, FakeAgent(site, hangs(), swallows=3), timeout=1).value()
    (visit,) = site.visits
    assert (outcome.status, visit.swallowed, visit.gone.time) == (State.TIMED_OUT, 3, 4.0)


def test_a_blocking_function_that_is_quick_is_simply_called(tmp_path: Path) -> None:
    assert run(tmp_path, double, 21).value().result == 42


def test_a_thread_goes_on_after_its_timeout_and_can_ask_whether_it_should(tmp_path: Path) -> None:
    noticed: list[bool] = []

    async def work() -> None:
        await asyncio.sleep(3)
        noticed.append(cancelled())

    done = run(tmp_path, lambda: Blocking(work()), timeout=1)
    assert (done.value().status, done.time, noticed) == (State.TIMED_OUT, 3.0, [True])


def test_a_process_is_killed_when_its_grace_is_over_and_cleans_nothing_up(tmp_path: Path) -> None:
    site = Site()
    agent = FakeAgent(site, hangs(), writes("late.py"), swallows=9)
    done = run(tmp_path, agent.in_a_process("job"), id="job", timeout=1)
    (visit,) = site.visits
    assert (done.value().status, visit.killed, visit.gone.time) == (State.TIMED_OUT, True, 5.0)
    assert not visit.touches


def test_a_process_that_dies_is_a_failure(tmp_path: Path) -> None:
    agent = FakeAgent(Site(), raises(Died)).in_a_process("job")
    error = run(tmp_path, agent, id="job").value().error
    assert error is not None
    assert error.type == "ProcessDied"


def test_functions_marked_for_a_process_run_in_a_simulated_one(tmp_path: Path) -> None:
    assert run(tmp_path, process(double), 4).value().result == 8


def test_an_exit_in_a_simulated_thread_is_its_failure_and_ends_nothing_else(tmp_path: Path) -> None:
    agent = FakeAgent(Site(), raises(SystemExit)).in_a_thread()
    assert run(tmp_path, agent).value().status is State.FAILED


def test_the_site_names_those_who_clash_and_what_was_not_claimed(tmp_path: Path) -> None:
    site = Site()
    careless = FakeAgent(site, writes("a.py"), works(2), reads("b.py"))

    async def main() -> None:
        async with Runtime(workspace=tmp_path, ports=simulated_ports()) as runtime:
            runtime.submit(careless, id="one", claims=[write("b.py")])
            runtime.submit(careless, id="two")

    simulate(main).value()
    assert site.clashes() == ["one#1 (0 to 2) and two#1 (0 to 2) both touched a.py"]
    assert len(site.unclaimed()) == 3

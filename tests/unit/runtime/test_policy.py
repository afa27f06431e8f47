"""Numbers of the runtime that nothing but these tests would miss."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from interlock import AttemptsStillAlive, Runtime, Task
from interlock.journal.history import Estimate
from interlock.model.limits import Quota
from interlock.runtime.estimates import Estimates
from interlock.runtime.limits.quota_queue import QuotaQueue, QuotaWaiter
from interlock.runtime.run_clock import KernelTimer, RunClock
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate


async def work() -> None:
    return


@pytest.mark.parametrize(("successes", "expected"), [(2, 5.0), (3, 60.0)])
def test_a_label_counts_from_three_successes_on(successes: int, expected: float) -> None:
    found = {"": Estimate(100, 5.0, 4.0), "kind=test": Estimate(successes, 60.0, 0.0)}
    estimates = Estimates(lambda agent, label: found.get(label))
    assert estimates.of(Task("a", work, labels={"kind": "test"})) == expected


def test_a_call_that_is_next_and_does_not_react_is_passed_over_after_a_second() -> None:
    queue = QuotaQueue("m", Quota(1, 1.0), None)
    deaf, other = (QuotaWaiter(queue, 0, name, lambda: None) for name in ("deaf", "other"))
    queue.join(deaf, 0.0)
    queue.join(other, 0.0)
    deaf.due = 10.0
    assert queue.next(11.0, set()) is deaf
    late: set[object] = set()
    assert queue.next(11.001, late) is other
    assert late == {"deaf"}


class Loop:
    """A loop that only keeps what it is asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.later: list[float] = []
        self.fire: Any = None

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, function: Any, at: float) -> None:
        self.fire = lambda: function(at)

    def call_later(self, delay: float, function: Any) -> None:
        self.later.append(delay)


@pytest.mark.parametrize(("late", "ticks", "later"), [(0.0499, 1, []), (0.0501, 0, [0.005])])
def test_a_timer_that_is_more_than_fifty_milliseconds_late_lets_reports_in_first(
    late: float, ticks: int, later: list[float]
) -> None:
    loop = Loop()
    told: list[None] = []
    timer = KernelTimer(RunClock(cast(Any, loop), 0.0, 0.0), lambda: told.append(None))
    timer.set(8.0)
    loop.now = 8.0 + late
    loop.fire()
    assert len(told) == ticks
    assert loop.later == pytest.approx(later)


@pytest.mark.parametrize(("needs", "stops"), [(0.9, True), (1.1, False)])
def test_what_did_not_finish_within_the_grace_has_a_second_to_stop(
    needs: float, stops: bool
) -> None:
    async def slow() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            end = asyncio.get_running_loop().time() + needs
            while (left := end - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.sleep(left)
                except asyncio.CancelledError:
                    continue

    async def main() -> bool:
        async with Runtime(ports=simulated_ports(), grace=5) as rt:
            rt.submit(slow, id="slow")
            await asyncio.sleep(0.1)
            try:
                await rt.shutdown(grace=5)
            except AttemptsStillAlive:
                await asyncio.sleep(5)
                return False
            return True

    assert simulate(main, deadline=1_000).value() is stops

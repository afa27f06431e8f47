"""Gates and a number of slots that follows the load, on the real Runtime in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from interlock import Auto, Gate, InvalidOption, Load, Runtime, Task, TaskContext
from interlock.kernel import stimuli as s
from interlock.model.event import Event
from interlock.model.throttled import ClosedGate, LoadedMachine
from interlock.model.why import NoCapacity
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate


class Weather:
    """A machine whose load the test decides; it remembers when it was asked."""

    def __init__(self, cpu: float | None = 5.0, memory: float = 5.0) -> None:
        self.load = Load(cpu, memory)
        self.asked: list[float] = []

    def read(self) -> Load:
        self.asked.append(asyncio.get_running_loop().time())
        return self.load


def play(
    main: Callable[[Runtime], Coroutine[Any, Any, None]], weather: Weather, **options: Any
) -> float:
    async def run() -> None:
        ports = simulated_ports(load=lambda: weather)
        async with Runtime(ports=ports, **options) as rt:
            await main(rt)

    ran = simulate(run, deadline=10_000)
    ran.value()
    assert not ran.leaked
    return ran.time


async def works(ctx: TaskContext) -> None:
    await asyncio.sleep(2)


def submit(rt: Runtime, count: int) -> None:
    for number in range(count):
        rt.submit(works, id=f"t{number}")


def test_above_the_gate_one_runs_at_a_time_because_something_always_may() -> None:
    async def main(rt: Runtime) -> None:
        submit(rt, 3)
        assert rt.progress().running == 1

    assert play(main, Weather(cpu=95.0), gate=Gate(cpu=90), max_parallel=4) == 6.0


@pytest.mark.parametrize(
    ("load", "running"),
    [(Load(90.0, 80.0), 3), (Load(90.1, 5.0), 1), (Load(5.0, 80.1), 1), (Load(None, 5.0), 1)],
)
def test_a_gate_looks_at_both_and_what_is_not_measured_yet_counts_as_busy(
    load: Load, running: int
) -> None:
    weather = Weather()
    weather.load = load

    async def main(rt: Runtime) -> None:
        submit(rt, 3)
        assert rt.progress().running == running

    play(main, weather, gate=Gate(cpu=90, memory=80), max_parallel=3)


def test_when_the_load_falls_the_others_start_within_a_quarter_of_a_second() -> None:
    weather = Weather(cpu=95.0)
    starts: list[float] = []

    async def main(rt: Runtime) -> None:
        rt.listen(lambda e: starts.append(rt._shell.now()) if e.kind == "started" else None)
        submit(rt, 4)
        await asyncio.sleep(0.6)
        weather.load = Load(50.0, 5.0)

    play(main, weather, gate=Gate(cpu=90), max_parallel=4)
    assert starts == pytest.approx([0.0, 0.75, 0.75, 0.75])


def test_why_gives_the_gate_with_the_figures_of_now() -> None:
    weather = Weather(cpu=95.0, memory=60.0)

    async def main(rt: Runtime) -> None:
        submit(rt, 2)
        await asyncio.sleep(0.9)
        weather.load = Load(99.0, 61.0)
        await asyncio.sleep(0.2)
        why = rt.why("t1")
        assert [type(each) for each in why.reasons] == [ClosedGate]
        said = "the gate has been closed for 1.1 s: CPU at 99 % (at most 90 %)"
        assert f"{said}, memory at 61 % (at most 80 %)" in str(why)

    play(main, weather, gate=Gate(cpu=90, memory=80))


def test_nobody_looks_while_nobody_waits_and_never_more_than_four_times_a_second() -> None:
    weather = Weather(cpu=95.0)

    async def main(rt: Runtime) -> None:
        await asyncio.sleep(100)
        first = len(weather.asked)
        submit(rt, 1)
        await asyncio.sleep(1.5)
        assert len(weather.asked) == first + 1  # before its start; then nobody waited
        submit(rt, 0)
        for number in range(50):
            rt.submit(works, id=f"more{number}")
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        rt.cancel("t0")
        for number in range(50):
            rt.cancel(f"more{number}")
        await asyncio.sleep(100)

    play(main, weather, gate=Gate(cpu=90))
    waits = [b - a for a, b in zip(weather.asked, weather.asked[1:], strict=False)]
    assert min(waits) >= 0.25 - 1e-9
    assert len(weather.asked) < 15


def test_a_parent_that_waits_for_its_children_is_nothing_that_runs() -> None:
    async def parent(ctx: TaskContext) -> int:
        return len(await ctx.run([Task(f"c{n}", works) for n in range(2)]))

    async def main(rt: Runtime) -> None:
        assert (await rt.submit(parent)).result == 2

    assert play(main, Weather(cpu=95.0), gate=Gate(cpu=90)) == 4.0


def test_an_attempt_that_will_not_stop_does_not_close_the_gate_for_ever() -> None:
    async def stubborn(ctx: TaskContext) -> None:
        for _ in range(60):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    async def main(rt: Runtime) -> None:
        rt.submit(stubborn, id="stubborn", timeout=1)
        outcome = await rt.submit(works)
        assert outcome.ended_at is not None
        assert rt.progress().zombies == 1

    play(main, Weather(cpu=95.0), gate=Gate(cpu=90), grace=100)


def test_gate_and_bounds_can_be_changed_while_the_run_goes_on() -> None:
    weather = Weather(cpu=95.0)

    async def main(rt: Runtime) -> None:
        submit(rt, 8)
        running = [rt.progress().running]
        rt.set_gate(Gate(cpu=90))
        rt.set_gate(None)
        running.append(rt.progress().running)
        rt.set_max_parallel(3)
        running.append(rt.progress().running)
        rt.set_max_parallel(Auto(1, 8, cpu=99))
        await asyncio.sleep(0.6)
        running.append(rt.progress().running)
        rt.set_capacity("slots", 8)
        running.append(rt.progress().running)
        assert running == [1, 2, 3, 5, 8]

    play(main, weather, gate=Gate(cpu=50), max_parallel=2)


def test_auto_adds_slots_while_the_machine_has_room_and_takes_them_away() -> None:
    weather = Weather()
    running: list[int] = []

    async def main(rt: Runtime) -> None:
        for number in range(100):
            rt.submit(works, id=f"t{number}")
        for _ in range(8):
            running.append(rt.progress().running)
            await asyncio.sleep(0.25)
        weather.load = Load(95.0, 5.0)
        await asyncio.sleep(30)
        running.append(rt.progress().running)
        why = rt.why("t99")
        assert [type(each) for each in why.reasons] == [LoadedMachine]
        assert "the load has allowed only 2 of 6 slots" in str(why)
        assert "CPU at 95 % (at most 80 %)" in str(why)
        weather.load = Load(5.0, 5.0)
        await asyncio.sleep(3)
        running.append(rt.progress().running)
        assert isinstance(rt.why("t99").reasons[0], NoCapacity)

    play(main, weather, max_parallel=Auto(2, 6))
    assert running == [2, 3, 4, 5, 6, 6, 6, 6, 2, 6]


def test_every_change_is_in_the_record_and_no_figure_is_one() -> None:
    weather = Weather(cpu=95.0)
    seen: list[Event] = []

    async def main(rt: Runtime) -> None:
        rt.listen(seen.append)
        submit(rt, 2)
        for cpu in (96.0, 97.0, 98.0):
            await asyncio.sleep(0.3)
            weather.load = Load(cpu, 5.0)
        weather.load = Load(5.0, 5.0)

    play(main, weather, gate=Gate(cpu=90))
    changes = [each.data for each in seen if isinstance(each.data, s.Throttle)]
    assert [each.level for each in changes] == [1, None]
    assert changes[0].because == ClosedGate(Load(95.0, 5.0), 90, None, 0.0)


def test_without_gate_and_bounds_nobody_measures_anything() -> None:
    weather = Weather()

    async def main(rt: Runtime) -> None:
        submit(rt, 20)

    play(main, weather, max_parallel=2)
    assert weather.asked == []


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (Gate, "cpu=, memory= or both"),
        (lambda: Gate(cpu=0), "above 0 and at most 100"),
        (lambda: Gate(memory=101), "above 0 and at most 100"),
        (lambda: Auto(0, 4), "1 or more"),
        pytest.param(lambda: Auto(5, 4), "contradicts", id="<lambda>-no number"),
        (lambda: Runtime(gate=90), "write Gate"),  # type: ignore[arg-type]
        (lambda: Runtime("many"), "whole number"),  # type: ignore[arg-type]
    ],
)
def test_impossible_limits_are_refused(make: Callable[[], object], match: str) -> None:
    with pytest.raises(InvalidOption, match=match):
        make()


def test_auto_as_text_has_the_usual_bounds() -> None:
    assert Runtime("auto")._limits.auto == Auto(1, 16)

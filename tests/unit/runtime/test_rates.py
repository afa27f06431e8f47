"""Rates that all share: a Retry-After slows everybody down, and quotas can be changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from interlock import AgentFailed, InvalidOption, Rate, Retry, Runtime, TaskContext, UnknownResource
from interlock.model.why import RateLimited
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_run import simulate


def play(main: Callable[[Runtime], Coroutine[Any, Any, None]], **options: Any) -> float:
    async def run() -> None:
        async with Runtime(ports=simulated_ports(), **options) as rt:
            await main(rt)

    ran = simulate(run, deadline=10_000)
    ran.value()
    return ran.time


OPENAI = {"openai": Rate(requests="100/s", tokens="1000/s")}


class Model:
    """Refuses the first call, and asks everybody to wait."""

    def __init__(self, rate: str = "openai") -> None:
        self.rate = rate
        self.calls: list[float] = []

    async def call(self, ctx: TaskContext) -> None:
        await ctx.acquire("openai", tokens=10)
        self.calls.append(asyncio.get_running_loop().time())
        if len(self.calls) == 1:
            raise AgentFailed("429", retry_after=20.0, rate=self.rate)


def test_one_agent_that_is_told_to_wait_slows_down_all() -> None:
    model = Model()

    async def main(rt: Runtime) -> None:
        await rt.submit(model.call, id="first")
        for number in range(3):
            rt.submit(model.call, id=f"t{number}")
        await asyncio.sleep(5)
        assert "enough again in 15 s" in str(rt.why("t0"))

    play(main, limits=OPENAI)
    assert model.calls == [0.0, 20.0, 20.0, 20.0]


def test_the_task_that_failed_waits_as_long_before_its_next_attempt() -> None:
    model = Model()

    async def main(rt: Runtime) -> None:
        assert (await rt.submit(model.call, retry=Retry(2, backoff=0))).succeeded

    assert play(main, limits=OPENAI) == 20.0


def test_an_agent_can_slow_down_all_and_go_on_itself() -> None:
    calls: list[float] = []

    async def call(ctx: TaskContext) -> None:
        if ctx.task.id == "first":
            ctx.hold_rate("openai", "7s")
        await ctx.acquire("openai")
        calls.append(asyncio.get_running_loop().time())

    async def main(rt: Runtime) -> None:
        rt.submit(call, id="first")
        rt.submit(call, id="second")

    play(main, limits=OPENAI)
    assert calls == [7.0, 7.0]


def test_a_rate_that_the_run_does_not_have_is_named_in_the_error() -> None:
    model = Model("opanai")

    async def main(rt: Runtime) -> None:
        outcome = await rt.submit(model.call)
        assert outcome.error is not None
        assert outcome.error.message == (
            "429 ('opanai' is not a rate of this run; there are: openai)"
        )
        with pytest.raises(UnknownResource, match="not a rate"):
            rt.hold_rate("opanai", 1)

    play(main, limits=OPENAI)


def test_a_rate_can_be_changed_and_added_while_the_run_goes_on() -> None:
    calls: list[tuple[str, float]] = []

    async def call(ctx: TaskContext, rate: str) -> None:
        await ctx.acquire(rate)
        calls.append((rate, asyncio.get_running_loop().time()))

    async def main(rt: Runtime) -> None:
        for _ in range(3):
            rt.submit(call, "openai")
        await asyncio.sleep(1)
        rt.set_limit("openai", Rate("2/min"))
        rt.set_limit("other", Rate("1/10s"))
        rt.submit(call, "other")
        rt.submit(call, "other")

    play(main, limits={"openai": Rate("1/min")})
    assert sorted(calls) == [
        ("openai", 0.0),
        ("openai", 1.0),
        ("openai", 60.0),
        ("other", 1.0),
        ("other", 11.0),
    ]


def test_a_quota_cannot_be_dropped_from_a_rate() -> None:
    async def main(rt: Runtime) -> None:
        with pytest.raises(InvalidOption, match=r"'openai\.tokens' has a quota"):
            rt.set_limit("openai", Rate("5/s"))
        with pytest.raises(InvalidOption, match="a Rate or a Breaker"):
            rt.set_limit("openai", 5)  # type: ignore[arg-type]

    play(main, limits=OPENAI)


def test_instances_of_an_agent_type_are_a_capacity() -> None:
    inside = most = 0

    async def architect(ctx: TaskContext) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(1)
        inside -= 1

    async def main(rt: Runtime) -> None:
        for number in range(6):
            rt.submit(architect, id=f"t{number}", uses="agent:architect")
        assert "needs 1 agent:architect; 0 of 1 free, held by t0 (1)" in str(rt.why("t1"))
        await asyncio.sleep(0.5)
        rt.set_capacity("agent:architect", 2)

    assert play(main, capacity={"agent:architect": 1}) == 3.5
    assert most == 2


def test_a_held_rate_stays_held_when_the_run_is_taken_up(tmp_path: Any) -> None:
    async def call() -> None:
        return None

    async def run(resume: bool) -> None:
        path = tmp_path / "journal.db"
        async with Runtime(1, tmp_path, path, resume, limits={"openai": Rate("9/s")}) as rt:
            if not resume:
                rt.hold_rate("openai", "1h")
                rt.set_limit("openai", Rate("3/s"))
                rt.submit(call, id="a", uses="openai")
                await rt.flush()
                rt._shell.suspend()  # as a signal does
                return
            handle = rt.submit(call, id="a", uses="openai")
            reason = handle.why().reasons[0]
            assert isinstance(reason, RateLimited)
            assert reason.quota == 3
            assert reason.until >= 3600
            handle.cancel()

    asyncio.run(run(False))
    asyncio.run(run(True))

"""Waiting for several tasks at once, however they end."""

from __future__ import annotations

import pytest

from interlock import Runtime, State, TaskContext, UnknownTask
from interlock.testing.simulated_ports import simulated_ports


def fails() -> None:
    raise LookupError("nothing there")


async def test_all_outcomes_are_there_when_it_returns_in_the_order_asked_for() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        good, bad = rt.submit(abs, -1, id="good"), rt.submit(fails, id="bad")
        outcomes = await rt.wait_all([bad, "good"])
        assert [each.status for each in outcomes] == [State.FAILED, State.SUCCEEDED]
        assert good.done()
        assert bad.done()
        assert await rt.wait_all([]) == []
        with pytest.raises(UnknownTask):
            await rt.wait_all(["nobody"])


async def test_a_task_that_waits_for_others_lends_out_its_slot() -> None:
    async def waits(ctx: TaskContext) -> list[str]:
        return [str(each.status) for each in await ctx.wait_all(["a", "b"])]

    async with Runtime(max_parallel=1, ports=simulated_ports()) as rt:
        waiting = rt.submit(waits)
        rt.submit(abs, -1, id="a")
        rt.submit(fails, id="b")
        assert (await waiting).result == ["succeeded", "failed"]

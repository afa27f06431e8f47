"""What only agents on the event loop can do: resist, and be asked again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.execution import agents
from tests.unit.execution.worlds import opened, story


@story
async def test_a_second_cancel_does_not_interrupt_the_cleaning_up(tmp_path: Path) -> None:
    cleaned: list[str] = []
    async with opened("coroutines", tmp_path) as world:
        token = world.submit(agents.clean_up_slowly, world.announced, cleaned)
        await world.hear()
        for _ in range(5):
            world.backend.cancel(token, 60)
            await asyncio.sleep(0)
        await world.sink.end_of(token)
    assert cleaned == ["all of it"]


@story
async def test_an_agent_that_swallows_its_cancellation_is_asked_again(tmp_path: Path) -> None:
    async with opened("coroutines", tmp_path) as world:
        token = world.submit(agents.swallow_cancellation, world.announced, 8)
        await world.hear()
        world.backend.cancel(token, 0.01)
        assert (await world.sink.end_of(token)).value == "in the end"


@story
async def test_a_second_cancel_may_shorten_the_grace(tmp_path: Path) -> None:
    async with opened("coroutines", tmp_path) as world:
        token = world.submit(agents.swallow_cancellation, world.announced, 4)
        await world.hear()
        world.backend.cancel(token, 1_000_000)
        world.backend.cancel(token, 0)
        await world.sink.end_of(token)

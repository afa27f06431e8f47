"""Being told when a limit gives out less."""

from __future__ import annotations

import asyncio

from interlock import Breaker, Runtime
from interlock.model.throttled import OpenBreaker
from interlock.testing.simulated_ports import simulated_ports
from tests.unit.execution.worlds import story


@story
async def test_a_listener_is_told_of_a_breaker_that_opens_and_closes() -> None:
    async def fails() -> None:
        raise OSError("down")

    told: list[tuple[str, bool, bool]] = []

    def hear(resource: str, reason: object) -> None:
        is_open = isinstance(reason, OpenBreaker)
        told.append((resource, is_open, isinstance(reason, OpenBreaker) and reason.until is None))

    async with Runtime(limits={"m": Breaker(1, 5)}, ports=simulated_ports()) as rt:
        end = rt.on_throttle(hear)
        await rt.submit(fails, uses="m")
        await asyncio.sleep(6)
        await rt.submit(asyncio.sleep, 0, uses="m")
        await asyncio.sleep(0)
        assert told == [("m", True, False), ("m", True, True), ("m", False, False)]
        end()
        await rt.submit(fails, uses="m")
        assert len(told) == 3

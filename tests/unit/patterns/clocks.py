"""A scheduler on the virtual loop, at a date of our choice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from interlock.runtime.ports import Ports
from interlock.testing.simulated_ports import simulated_ports

MONDAY = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
"""A day on which nothing special happens to any clock."""


def wall_from(start: datetime) -> Callable[[], float]:
    """A wall clock that shows `start` when the virtual loop begins."""
    zero = start.timestamp()

    def wall() -> float:
        try:
            return zero + asyncio.get_running_loop().time()
        except RuntimeError:  # jobs may be added before the loop runs
            return zero

    return wall


def ports_from(start: datetime, seed: int = 0) -> Ports:
    """The simulated world, beginning at `start`."""
    return replace(simulated_ports(seed), wall=wall_from(start))


async def until(moment: datetime, start: datetime = MONDAY) -> None:
    """Sleep until the wall clock shows this."""
    await asyncio.sleep((moment - start).total_seconds() - asyncio.get_running_loop().time())

"""`simulated_ports()`: what a Runtime needs to run on the virtual loop.

async def main():
    async with Runtime(ports=simulated_ports(seed=7)) as rt:
        return await rt.submit(my_agent)

outcome = simulate(main, seed=7).value()
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from interlock.journal.memory import MemoryJournal
from interlock.journal.port import Journal
from interlock.journal.sqlite import SqliteJournal
from interlock.model.load import Load
from interlock.runtime.machine import LoadMeter
from interlock.runtime.ports import Ports
from interlock.testing.simulated_backends import simulated_backends

EPOCH = 1_700_000_000.0
"""The start of simulated time, in seconds since 1970."""


class IdleMachine:
    """A load meter of a machine that is never busy."""

    def read(self) -> Load:
        return Load(5.0, 5.0)


def simulated_ports(
    seed: int = 0,
    journal: Callable[[], Journal] = MemoryJournal,
    load: Callable[[], LoadMeter] = IdleMachine,
) -> Ports:
    """A clock, randomness and backends that depend on the seed alone; there are no signals."""
    return Ports(
        wall=_wall,
        chance=random.Random(seed),
        backends=simulated_backends,
        signals=False,
        journal=journal,
        sweep=_nothing_is_left,
        load=load,
    )


async def _nothing_is_left(_journal: SqliteJournal, _workspace: Path) -> None:
    """There are no real processes in a simulation."""


def _wall() -> float:
    try:
        return EPOCH + asyncio.get_running_loop().time()
    except RuntimeError:  # a Runtime may be made before the loop runs
        return EPOCH

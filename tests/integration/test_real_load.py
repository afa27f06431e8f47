"""The load of the real machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from interlock import Auto, Gate, Runtime, TaskContext
from interlock.runtime.machine import Machine


def _until(met: Callable[[], bool]) -> None:
    """Keep a core busy until something holds."""
    while not met():
        sum(range(1000))


def test_cpu_use_is_known_after_a_moment_and_memory_at_once() -> None:
    machine = Machine()
    first = machine.read()
    assert first.cpu is None
    assert 0 < first.memory < 100
    began = time.monotonic()
    _until(lambda: time.monotonic() - began > 0.2)
    later = machine.read()
    assert later.cpu is not None
    assert 0 < later.cpu <= 100
    assert machine.read().cpu == later.cpu  # too soon for another measurement


def test_a_gate_and_bounds_work_on_the_real_machine() -> None:
    async def agent(ctx: TaskContext) -> int:
        await asyncio.sleep(0.05)
        return ctx.attempt

    async def main() -> None:
        # More memory than this is in use everywhere: one runs at a time, and all of them do.
        async with Runtime(Auto(1, 4), gate=Gate(memory=0.01)) as rt:
            handles = [rt.submit(agent) for _ in range(4)]
            why = str(rt.why("agent-2"))
            assert "the gate has been closed" in why
            assert "(at most 0.01 %)" in why
            await handles[0]
            rt.set_gate(Gate(cpu=100, memory=100))
            assert [(await handle).result for handle in handles] == [1, 1, 1, 1]

    asyncio.run(main())

"""Resources that become counted ones while a run goes on."""

from __future__ import annotations

import pytest

from interlock import InvalidOption, Runtime, State, UnknownResource
from interlock.testing.simulated_ports import simulated_ports


async def test_a_capacity_can_be_added_to_a_run() -> None:
    async with Runtime(ports=simulated_ports()) as rt:
        with pytest.raises(UnknownResource):
            rt.set_capacity("gpu", 1)
        rt.set_capacity("gpu", 1, new=True)
        first, second = (rt.submit(abs, -1, uses="gpu") for _ in range(2))
        assert (first.state, second.state) == (State.RUNNING, State.WAITING)
        with pytest.raises(InvalidOption, match="already"):
            rt.set_capacity("gpu", 2, new=True)

"""The real runtime on a disk that fails or dies at every operation, in simulated time.

The programs are in `durable_scenarios.py`, the lives they have in `durable_world.py`, and what must
hold afterwards, by a truth outside of the journal, in `durable_judge.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.testing.faulty_disk import Fault, FaultyDisk
from interlock.testing.interruptions import crash_at
from tests.faults.durable_judge import violations
from tests.faults.durable_scenarios import SCENARIOS
from tests.faults.durable_world import World

PASSING = (Fault.ERROR, Fault.FULL, Fault.SHORT, Fault.UNSURE)
CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
every_scenario = pytest.mark.parametrize("name", SCENARIOS)


class Plain:
    """A scenario as it goes without a fault."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        disk = FaultyDisk()
        self.world = self.another("plain")
        self.world.live(disk).value()
        self.operations = range(1, disk.operations + 1)
        self.steps = range(1, self.world.steps + 1)
        assert disk.operations > 30
        assert not list(violations(self.world))

    def another(self, name: str) -> World:
        return World(self._folder / name, SCENARIOS[self._name])

    def judge(self, world: World, late: float = 0.05) -> None:
        assert not list(violations(world, late=late))
        assert world.outcomes == self.world.outcomes


@every_scenario
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_changes_no_outcome(tmp_path: Path, name: str, fault: Fault) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations:
        world, disk = plain.another(f"{at}"), FaultyDisk(at, fault)
        world.live(disk).value()
        assert disk.struck == 1
        plain.judge(world)


@every_scenario
def test_a_disk_that_stays_full_for_a_while_changes_no_outcome(tmp_path: Path, name: str) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations:
        world, disk = plain.another(f"{at}"), FaultyDisk(at, Fault.FULL, times=6)
        world.live(disk).value()
        assert disk.struck == 6
        plain.judge(world, late=1.0)


@every_scenario
@pytest.mark.parametrize("fault", CRASHES)
def test_after_a_crash_at_any_operation_the_run_is_taken_up(
    tmp_path: Path, name: str, fault: Fault
) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations:
        world = plain.another(f"{at}")
        assert world.live(FaultyDisk(at, fault)).crashed
        world.live_on()
        plain.judge(world)


@pytest.mark.parametrize("name", ["a chain with a retry", "a rate and a question"])
def test_after_a_crash_at_any_step_the_run_is_taken_up(tmp_path: Path, name: str) -> None:
    plain = Plain(tmp_path, name)
    for step in plain.steps:
        world = plain.another(f"{step}")
        assert world.live(faults=[crash_at(step)]).crashed
        world.live_on()
        plain.judge(world)

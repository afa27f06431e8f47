"""The real runtime on a disk that fails or dies at every operation, in simulated time.

The programs are in `durable_scenarios.py`, the lives they have in `durable_world.py`, and what must
hold afterwards, by a truth outside of the journal, in `durable_judge.py`.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from interlock.runtime.recovery.known_tasks import CUT_OFF_AT_MOST
from interlock.testing.interruptions import crash_at
from tests.faults.durable_judge import lost, violations
from tests.faults.durable_plants import PLANTS, Plant
from tests.faults.durable_scenarios import SCENARIOS, a_task_that_kills
from tests.faults.durable_world import DurableWorld
from tests.simulation.faulty_disk import DiskFault, FaultyDisk

PASSING = (DiskFault.ERROR, DiskFault.FULL, DiskFault.SHORT, DiskFault.UNSURE)
CRASHES = (DiskFault.CRASH_BEFORE, DiskFault.CRASH_AFTER)
every_scenario = pytest.mark.parametrize("name", SCENARIOS)


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Thousands of lives have nothing to say that would not be in their journals."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)
    # The loops of dead lives are kept for good. Looking through them at every collection would
    # take longer than the tests.
    gc.collect()
    gc.freeze()


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

    def another(self, name: str) -> DurableWorld:
        return DurableWorld(self._folder / name, SCENARIOS[self._name])

    def judge(self, world: DurableWorld, late: float = 0.05) -> None:
        assert not list(violations(world, late=late))
        assert world.outcomes == self.world.outcomes


@every_scenario
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_changes_no_outcome(
    tmp_path: Path, name: str, fault: DiskFault
) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations:
        world, disk = plain.another(f"{at}"), FaultyDisk(at, fault)
        world.live(disk).value()
        assert disk.struck == 1
        plain.judge(world)


@every_scenario
def test_a_disk_that_stays_full_for_a_while_changes_no_outcome(tmp_path: Path, name: str) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations[::3]:
        world, disk = plain.another(f"{at}"), FaultyDisk(at, DiskFault.FULL, times=6)
        world.live(disk).value()
        assert disk.struck == 6
        plain.judge(world, late=1.0)


@every_scenario
@pytest.mark.parametrize("fault", CRASHES)
def test_after_a_crash_at_any_operation_the_run_is_taken_up(
    tmp_path: Path, name: str, fault: DiskFault
) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations:
        world = plain.another(f"{at}")
        assert world.live(FaultyDisk(at, fault)).crashed
        assert not list(lost(world))
        world.live_on()
        plain.judge(world)


@pytest.mark.parametrize("name", ["a chain with a retry", "a rate and a question"])
def test_after_a_crash_at_any_step_the_run_is_taken_up(tmp_path: Path, name: str) -> None:
    plain = Plain(tmp_path, name)
    for step in plain.steps:
        world = plain.another(f"{step}")
        assert world.live(faults=[crash_at(step)]).crashed
        assert not list(lost(world))
        world.live_on()
        plain.judge(world)


@every_scenario
def test_over_three_crashes_no_token_comes_twice_and_nothing_is_lost(
    tmp_path: Path, name: str
) -> None:
    plain = Plain(tmp_path, name)
    for at in plain.operations[::4]:
        world = plain.another(f"{at}")
        for crash in range(3):
            # Where the later ones strike is spread over the run; some come to its end before that.
            world.live(FaultyDisk(1 + at * (1 + 6 * crash) % len(plain.operations), CRASHES[1]))
            assert not list(lost(world))
        world.live_on()
        assert not list(violations(world))


@pytest.mark.parametrize("fault", CRASHES)
def test_after_a_crash_the_same_keys_in_a_new_run_bring_what_they_had_brought(
    tmp_path: Path, fault: DiskFault
) -> None:
    plain = Plain(tmp_path, "keys and a cancel")
    for at in plain.operations:
        world = plain.another(f"{at}")
        world.live(FaultyDisk(at, fault))
        world.live(resume=False).value()
        world.live(resume=False).value()
        plain.judge(world)
        paid = [fact for fact in world.facts if fact.what == "ran" and fact.more[3]]
        assert all(fact.life < 2 for fact in paid)


def test_a_task_that_takes_its_coordinator_with_it_is_given_up(tmp_path: Path) -> None:
    world = DurableWorld(tmp_path / "world", a_task_that_kills)
    for _ in range(CUT_OFF_AT_MOST):
        assert world.live().crashed
    world.live_on()
    assert world.outcomes == {"killer": ("failed", None), "next": ("skipped", None)}
    assert sum(fact.what == "ran" for fact in world.facts) == CUT_OFF_AT_MOST
    assert not list(violations(world))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_the_judge_finds_a_planted_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plain = Plain(tmp_path, PLANTS[plant].scenario)
    plant(monkeypatch)
    found: list[str] = []
    for at, fault in product(reversed(plain.operations), CRASHES):
        world = plain.another(f"{at}-{fault}")
        world.live(FaultyDisk(at, fault))
        found += lost(world)
        world.live(resume=PLANTS[plant].resume).value()
        found += violations(world)
        if any(PLANTS[plant].says in each for each in found):
            return
    pytest.fail(f"found only {found}")

"""Seeded worlds: random workloads and faults against the real kernel, judged at every step."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.simulation.batch import run_seeds
from tests.simulation.kernel.storyteller import make_story
from tests.simulation.kernel.target import KERNEL
from tests.simulation.kernel.world import World
from tests.simulation.narration import narrate
from tests.simulation.shrink import shrink

SEEDS = range(300)
TRACE = """
from tests.simulation.kernel.storyteller import make_story
from tests.simulation.kernel.world import World
print([World(make_story(seed)).run().trace_hash() for seed in range(40)])
"""


def test_no_rule_is_broken_in_any_world_of_a_fixed_set() -> None:
    batch = run_seeds(KERNEL.name, SEEDS)
    assert not batch.failed, narrate(shrink(make_story(batch.failed[0]), KERNEL))


def test_the_same_seed_tells_the_same_story_whatever_the_hash_seed() -> None:
    told = set()
    for hash_seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", TRACE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        told.add(done.stdout)
    assert len(told) == 1


def test_the_same_seed_tells_the_same_story_twice() -> None:
    for seed in range(20):
        first, second = (World(make_story(seed)).run() for _ in range(2))
        assert first.lines() == second.lines()

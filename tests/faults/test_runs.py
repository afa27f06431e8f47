"""Seeded runs: stories told through the public API to the real runtime, judged by what was done."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.simulation.batch import run_seeds
from tests.simulation.narration import narrate
from tests.simulation.planting import first_seed
from tests.simulation.runtime.planted import BUGS
from tests.simulation.runtime.storyteller import make_story
from tests.simulation.runtime.target import RUNTIME, play
from tests.simulation.shrink import shrink

SEEDS = range(400)
TRACE = """
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.storyteller import make_story
plays = [Play(make_story(seed)).run() for seed in range(30)]
print([play.result.fingerprint for play in plays if play.result])
print([[(at, e.kind, e.task_id) for at, e in play.record.events] for play in plays])
"""


def test_no_rule_is_broken_in_any_run_of_a_fixed_set() -> None:
    batch = run_seeds(RUNTIME.name, SEEDS)
    assert not batch.failed, narrate(shrink(make_story(batch.failed[0]), RUNTIME))


def test_the_same_seed_makes_the_same_run_whatever_the_hash_seed() -> None:
    told = set()
    for hash_seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", TRACE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        told.add(done.stdout)
    assert len(told) == 1


def test_a_violation_is_told_with_the_shortest_story_that_shows_it() -> None:
    bug = "a run goes on when its caller has gone"
    seed = first_seed(RUNTIME, BUGS[bug], range(500))
    assert seed is not None
    story = make_story(seed)
    with BUGS[bug]():
        whole, short = play(story), shrink(story, RUNTIME)
        assert short.violations[0] in narrate(short)
    assert short.length < whole.length
    assert len(short.story.acts) < len(whole.story.acts)

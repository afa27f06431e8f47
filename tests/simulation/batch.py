"""Many seeds of one target, in one process or several."""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from tests.simulation.targets import TARGETS

SIZE = 50
EVERY = 1_000
"""After so many stories each, a line of progress on stderr."""


class SeedBatch(NamedTuple):
    """The result of some seeds."""

    stories: int
    steps: int
    seen: Counter[str]
    failed: tuple[int, ...]
    """The seeds whose stories break a rule."""

    def plus(self, other: SeedBatch) -> SeedBatch:
        seen = Counter(self.seen)
        seen.update(other.seen)
        counts = (self.stories + other.stories, self.steps + other.steps)
        return SeedBatch(*counts, seen, self.failed + other.failed)


NO_SEEDS = SeedBatch(0, 0, Counter(), ())


def run_seeds(target: str, seeds: Iterable[int]) -> SeedBatch:
    """Play the stories of these seeds one after the other."""
    total = NO_SEEDS
    for seed in seeds:
        chosen = TARGETS[target]
        judged = chosen.play(chosen.make_story(seed))
        failed = (seed,) if judged.violations else ()
        total = total.plus(SeedBatch(1, judged.steps, judged.seen, failed))
    return total


def run_all(target: str, start: int, count: int, jobs: int) -> SeedBatch:
    """The same over several processes. It stops early, after the first batch that fails."""
    stop = start + count
    batches = [range(n, min(n + SIZE, stop)) for n in range(start, stop, SIZE)]
    run = partial(run_seeds, target)
    if jobs <= 1:
        return _add_up(map(run, batches), target, count)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return _add_up(pool.imap(run, batches), target, count)


def _add_up(batches: Iterable[SeedBatch], target: str, count: int) -> SeedBatch:
    total = NO_SEEDS
    for batch in batches:
        total = total.plus(batch)
        if total.failed:
            break
        if total.stories % EVERY == 0 and total.stories < count:
            done = f"{total.stories:,} of {count:,} {TARGETS[target].stories}"
            print(done, file=sys.stderr, flush=True)
    return total

"""`python -m tests.simulation.runtime.simulate --seeds 2000`: runs of the real Runtime, judged.

A violation prints the seed and the shortest story that shows it, and the exit status is 1;
`--seed N` tells the run of one seed again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.simulation.runtime.judge import violations
from tests.simulation.runtime.narration import tell
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.shrink import shrink
from tests.simulation.runtime.storyteller import make_story

BATCH = 50
ENOUGH = 1_000
EXPECTED = (
    "settled succeeded", "settled failed", "settled timed_out", "settled cancelled",
    "settled skipped", "attempt in a thread", "attempt in a process", "attempt on the loop",
    "second attempt", "third attempt", "zombie", "killed", "cancellation swallowed",
    "left by AttemptsStillAlive", "left by Boom", "left by CancelledError", "left normally",
    "user cancelled twice", "second run", "caller lost patience", "caller got TaskFailed",
    "caller got FatalError", "results delivered", "ask: granted", "ask: lost patience",
    "extend: granted", "extend: denied", "extend: lost patience", "join: granted",
    "join: denied", "take: granted", "take: settled", "children: granted",
    "children: lost patience", "children: the attempt was over", "orphans: granted",
    "several waits at once", "slow journal", "bad listener", "passed while it waited",
    "act: map", "act: run", "act: same key", "act: pause", "act: shutdown", "act: set capacity",
    "submit: ShuttingDown", "bad input: UnknownDependency",
)  # fmt: skip
"""A judge that never saw one of these in a thousand runs would have slept."""


class Batch(NamedTuple):
    """What came of some seeds."""

    runs: int
    steps: int
    seen: Counter[str]
    failed: tuple[int, ...]


def run_seeds(seeds: Iterable[int]) -> Batch:
    """Play the stories of these seeds one after the other."""
    runs = steps = 0
    seen: Counter[str] = Counter()
    failed = []
    for seed in seeds:
        play = Play(make_story(seed)).run()
        if violations(play):
            failed.append(seed)
        runs += 1
        steps += play.result.steps if play.result is not None else 0
        seen.update(play.record.seen)
    return Batch(runs, steps, seen, tuple(failed))


def run_all(start: int, count: int, jobs: int) -> Batch:
    """The same over several processes, stopping early where something is found."""
    stop = start + count
    batches = [range(n, min(n + BATCH, stop)) for n in range(start, stop, BATCH)]
    if jobs <= 1:
        return _gather(map(run_seeds, batches))
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return _gather(pool.imap(run_seeds, batches))


def _gather(batches: Iterable[Batch]) -> Batch:
    total = Batch(0, 0, Counter(), ())
    for batch in batches:
        seen = total.seen + batch.seen
        total = Batch(
            total.runs + batch.runs, total.steps + batch.steps, seen, total.failed + batch.failed
        )
        if total.failed:
            break
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when a rule was broken."""
    parser = argparse.ArgumentParser(prog="tests.simulation.runtime.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many runs")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="tell the run of this one seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        play = Play(make_story(chosen.seed)).run()
        broken = bool(violations(play))
        print(tell(shrink(play.story) if broken else play))
        return int(broken)
    began = time.perf_counter()
    total = run_all(chosen.start, chosen.seeds, chosen.jobs)
    took = time.perf_counter() - began
    print(f"{total.steps:,} steps of the real runtime; exercised:")
    for name, times in sorted(total.seen.items()):
        print(f"  {times:9,d}  {name}")
    print(f"{total.runs:,} runs in {took:.1f} s ({total.runs / took:.0f} per second)")
    return _verdict(total)


def _verdict(total: Batch) -> int:
    """Say in the end what came of it; the exit status."""
    if total.failed:
        seed = total.failed[0]
        print(tell(shrink(make_story(seed))))
        print(f"a rule was broken in {len(total.failed)} runs; tell this one again: --seed {seed}")
        return 1
    asleep = [name for name in EXPECTED if not total.seen[name]]
    if asleep and total.runs >= ENOUGH:
        print(f"the judge slept: never exercised {', '.join(asleep)}")
        return 1
    print(f"no rule was broken in {total.runs:,} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())

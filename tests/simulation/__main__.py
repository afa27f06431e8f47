"""`python -m tests.simulation kernel --seeds 10000`: many stories of one target, each judged.

The last line says that no rule was broken in so many stories. A violation prints the seed and the
shortest story that shows it, and the exit status is 1; `--seed N` replays the story of one seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from tests.simulation.batch import EVERY, SeedBatch, run_all
from tests.simulation.narration import narrate
from tests.simulation.shrink import shrink
from tests.simulation.target import Target
from tests.simulation.targets import TARGETS


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("target", choices=TARGETS, help="what to simulate")
    parser.add_argument("--seeds", type=int, default=1000, help="how many stories")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay the story of this one seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args(arguments)
    target = TARGETS[chosen.target]
    if chosen.seed is not None:
        return _replay(target, chosen.seed)
    began = time.perf_counter()
    total = run_all(target.name, chosen.start, chosen.seeds, chosen.jobs)
    took = time.perf_counter() - began
    print(f"{total.steps:,} {target.steps}; exercised:")
    for name, times in sorted(total.seen.items()):
        print(f"  {times:9,d}  {name}")
    done = f"{total.stories:,} {target.stories}"
    print(f"{done} in {took:.1f} s ({total.stories / took:.0f} per second)")
    return _verdict(target, total)


def _replay(target: Target[Any], seed: int) -> int:
    judged = target.play(target.make_story(seed))
    broken = bool(judged.violations)
    print(narrate(shrink(judged.story, target) if broken else judged))
    return int(broken)


def _verdict(target: Target[Any], total: SeedBatch) -> int:
    """Print the result of all seeds; the exit status."""
    done = f"{total.stories:,} {target.stories}"
    if total.failed:
        seed = total.failed[0]
        print(narrate(shrink(target.make_story(seed), target)))
        print(f"a rule was broken in {len(total.failed)} of {done}; replay this one: --seed {seed}")
        return 1
    missing = [name for name in target.expected if not total.seen[name]]
    if missing and total.stories >= EVERY:
        print(f"the judge was not exercised: {', '.join(missing)} never occurred")
        return 1
    print(f"no rule was broken in {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

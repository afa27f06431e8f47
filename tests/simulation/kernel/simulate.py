"""`python -m tests.simulation.kernel.simulate --seeds 10000`: worlds, judged at every step.

The last line says that no rule was broken in so many worlds. A violation prints the seed and the
shortest story that shows it, and the exit status is 1; `--seed N` tells the world of one seed
again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.simulation.kernel.shrink import shrink
from tests.simulation.kernel.storyteller import make_script
from tests.simulation.kernel.world import Result, World

BATCH = 50
EVERY = 1_000
"""After so many worlds each, a line of progress on stderr."""
EXPECTED = (
    "started", "zombie", "zombie without a slot", "ended before gone", "stale report",
    "report of a zombie", "retry after a failure", "retry after a timeout", "overtaken",
    "reservation", "children at depth 1", "children at depth 2", "children at depth 3",
    "resumed at once: extend", "resumed later: extend", "denied: extend", "denied: tasks",
    "resumed later: take", "resumed later: ask", "resumed later: tasks", "settled succeeded",
    "settled failed", "settled timed_out", "settled cancelled", "settled skipped",
    "settled conflicted", "Drain", "Shutdown", "Pause", "Unpause", "SetCapacity", "HoldRate",
    "Prioritize", "CancelGroup", "Cancel", "Used", "Reports", "lost without a word",
    "ImpossibleClaim", "bad input: DuplicateId", "bad input: InvalidOption", "extension refused",
    "2 requests at once", "3 requests at once", "resumed without a slot, others being open",
    "group joined later", "group deadline replaced", "capacity of nothing",
    "capacity back from nothing", "no slots", "case folded", "passed for a slot",
    "waits for a stranger", "waits for its own kind", "needed in a drain", "Occupy", "Vacate",
    "occupied although it was held", "withdrawn: extend", "withdrawn: take", "withdrawn: tasks",
    "withdrawn: ask", "withdrawn: slot", "withdrawn: too late", "resumed at once: slot",
    "resumed later: slot", "throttled",
)  # fmt: skip
"""A judge that never saw one of these in a thousand worlds would have slept."""


class Batch(NamedTuple):
    """What came of some seeds."""

    worlds: int
    handles: int
    seen: Counter[str]
    failed: tuple[int, ...]


def run_seeds(seeds: Iterable[int]) -> Batch:
    """Run the worlds of these seeds one after the other."""
    worlds = handles = 0
    seen: Counter[str] = Counter()
    failed = []
    for seed in seeds:
        result = World(make_script(seed)).run()
        worlds += 1
        handles += result.handles
        seen.update(result.seen)
        if result.violation is not None:
            failed.append(seed)
    return Batch(worlds, handles, seen, tuple(failed))


def run_all(start: int, count: int, jobs: int) -> Batch:
    """The same over several processes, stopping early where something is found."""
    stop = start + count
    batches = [range(n, min(n + BATCH, stop)) for n in range(start, stop, BATCH)]
    if jobs <= 1:
        return _gather(map(run_seeds, batches), count)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return _gather(pool.imap(run_seeds, batches), count)


def _gather(batches: Iterable[Batch], count: int) -> Batch:
    """Add up, up to the first batch in which a rule was broken."""
    total = Batch(0, 0, Counter(), ())
    for batch in batches:
        total = _add(total, batch)
        if total.failed:
            break
        if total.worlds % EVERY == 0 and total.worlds < count:
            print(f"{total.worlds:,} of {count:,} worlds", file=sys.stderr, flush=True)
    return total


def _add(a: Batch, b: Batch) -> Batch:
    seen = Counter(a.seen)
    seen.update(b.seen)
    return Batch(a.worlds + b.worlds, a.handles + b.handles, seen, a.failed + b.failed)


def tell(result: Result) -> str:
    """A story with its moral."""
    script = result.script
    limits = f"slots {script.slots}, capacities {script.capacities}, rates {script.rates}"
    limits += ", case folded" if script.fold_case else ""
    head = [f"seed {script.seed}: {len(result.trace)} steps; {limits}"]
    end = str(result.violation) if result.violation else "no rule was broken"
    return "\n".join([*head, *result.lines(), end])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when a rule was broken."""
    parser = argparse.ArgumentParser(prog="tests.simulation.kernel.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many worlds")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="tell the world of this one seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        result = World(make_script(chosen.seed)).run()
        print(tell(shrink(result.script) if result.violation else result))
        return 1 if result.violation else 0
    began = time.perf_counter()
    total = run_all(chosen.start, chosen.seeds, chosen.jobs)
    took = time.perf_counter() - began
    print(f"{total.handles:,} times handle(), each judged; exercised:")
    for name, times in sorted(total.seen.items()):
        print(f"  {times:9,d}  {name}")
    print(f"{total.worlds:,} worlds in {took:.1f} s ({total.worlds / took:.0f} per second)")
    return _verdict(total)


def _verdict(total: Batch) -> int:
    """Say in the end what came of it; the exit status."""
    if total.failed:
        seed = total.failed[0]
        print(tell(shrink(make_script(seed))))
        broken, worlds = len(total.failed), f"{total.worlds:,} worlds"
        print(f"a rule was broken in {broken} of {worlds}; tell this one again: --seed {seed}")
        return 1
    asleep = [name for name in EXPECTED if not total.seen[name]]
    if asleep and total.worlds >= EVERY:
        print(f"the judge slept: never exercised {', '.join(asleep)}")
        return 1
    print(f"no rule was broken in {total.worlds:,} worlds")
    return 0


if __name__ == "__main__":
    sys.exit(main())

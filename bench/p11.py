"""P11: what pattern claims cost in comparison with literal paths.

10,000 claims (5,000 tasks with two each) over a tree of 100,000 paths. Half of the claims are
patterns, 1 % are rooted at `**`; the same workload with each pattern replaced by a path it
matches is the baseline. Both are measured in turn, each time with a new kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from statistics import median

from bench.cost import cost_per_task
from bench.figure import Figure
from interlock.model.claim import Claim, read, write
from interlock.model.task import Task

PACKAGES, FOLDERS, FILES = 500, 10, 20
TASKS = 5_000
SLOTS = 100
REPEATS = 7
KINDS = ("py", "md", "ts", "json")


def measure() -> Iterator[Figure]:
    patterns, literals = _workloads(Random("P11"))
    costs: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        costs[0].append(cost_per_task(patterns, SLOTS))
        costs[1].append(cost_per_task(literals, SLOTS))
    yield Figure("P11 half patterns", median(costs[0]), unit="µs per task")
    yield Figure("P11 literal paths", median(costs[1]), unit="µs per task")
    ratios = [ours / base for ours, base in zip(*costs, strict=True)]
    yield Figure("P11 patterns against literal paths", median(ratios), 2.0, "×")


def _workloads(chance: Random) -> tuple[list[Task], list[Task]]:
    patterns, literals = [], []
    for number in range(TASKS):
        pairs = [_claim(chance) for _ in range(2)]
        patterns.append(Task(f"t{number}", claims=[pattern for pattern, _ in pairs]))
        literals.append(Task(f"t{number}", claims=[literal for _, literal in pairs]))
    return patterns, literals


def _claim(chance: Random) -> tuple[Claim, Claim]:
    """A claim of the workload with patterns, and its literal stand-in."""
    package, folder = chance.randrange(PACKAGES), chance.randrange(FOLDERS)
    file = chance.randrange(FILES)
    kind = KINDS[file % len(KINDS)]
    literal = f"src/pkg{package}/part{folder}/file{file}.{kind}"
    claim = write if chance.random() < 0.5 else read
    share = chance.random()
    if share < 0.01:
        return claim(f"**/file{file}.{kind}"), claim(literal)
    if share < 0.5:
        shape = chance.choice(
            (
                f"src/pkg{package}/**/*.{kind}",
                f"src/pkg{package}/*/file{file}.*",
                f"src/pkg{package}/part{folder}/*.{kind}",
                f"src/pkg{package}/part{folder}/**",
            )
        )
        return claim(shape), claim(literal)
    return claim(literal), claim(literal)

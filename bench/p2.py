"""P2: the cost of a task must not grow with the queue. Two claims of 1,000 files, 100 slots."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random
from statistics import median
from unittest.mock import patch

from bench.cost import cost_per_task
from bench.figure import Figure
from interlock.kernel.table import Blocker, Table
from interlock.kernel.waiters import Waiter
from interlock.model.claim import write
from interlock.model.task import Task

SIZES = (10_000, 100_000, 1_000_000)
SLOTS = 100
ROUNDS = 2
"""Of all sizes in turn. A million tasks take long enough to be measured once a round."""
REPEATS = {10_000: 5, 100_000: 2, 1_000_000: 1}


def measure() -> Iterator[Figure]:
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size in SIZES:
            tasks = _tasks(size)
            for _ in range(REPEATS[size]):
                costs[size].append(cost_per_task(tasks, SLOTS))
            del tasks
    for size in SIZES:
        yield Figure(f"P2 {size:,} queued", median(costs[size]), unit="µs per task")
    ratio = median(costs[SIZES[-1]]) / median(costs[SIZES[0]])
    yield Figure("P2 1,000,000 against 10,000", ratio, 1.25, "×")
    small, large = (_without_collector(size) for size in SIZES[:2])
    yield Figure("P2 100,000 against 10,000, collector off", large / small, unit="×")
    for size in SIZES[:2]:
        yield Figure(f"P2 {size:,} queued, looks", _looks_per_task(size), unit="looks per task")


def _without_collector(size: int) -> float:
    """The cost without Python's garbage collector, which walks through all that is queued."""
    tasks = _tasks(size)
    gc.disable()
    try:
        return median(cost_per_task(tasks, SLOTS) for _ in range(3))
    finally:
        gc.enable()


def _looks_per_task(size: int) -> float:
    """How often the kernel looks at a waiter: work that depends on nothing but the workload."""
    look, looks = Table.blocker, 0

    def counted(table: Table, waiter: Waiter) -> Blocker | None:
        nonlocal looks
        looks += 1
        return look(table, waiter)

    with patch.object(Table, "blocker", counted):
        cost_per_task(_tasks(size), SLOTS)
    return looks / size


def _tasks(count: int) -> list[Task]:
    chance = Random(count)
    files = [write(f"f{number}") for number in range(1_000)]
    return [Task(f"t{number}", claims=chance.sample(files, 2)) for number in range(count)]

"""P9: 200 tasks of 50 ms, each with two claims out of 50, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.bounds import lower_bound
from bench.drive import drive
from bench.figure import Figure, mean
from bench.job import Job
from bench.judge import judge
from bench.naive import first_come
from interlock.model.claim import write

SLOTS = 100
SEEDS = range(20)


def measure() -> Iterator[Figure]:
    ours: list[float] = []
    naive: list[float] = []
    for seed in SEEDS:
        jobs = _jobs(Random(f"P9 {seed}"))
        bound = lower_bound(jobs, SLOTS)
        for ratios, policy in ((ours, drive), (naive, first_come)):
            schedule = judge(policy(jobs, SLOTS), jobs, SLOTS)
            ratios.append(schedule.makespan(jobs) / bound)
    yield Figure("P9 first come with skipping, mean", mean(naive), unit="× bound")
    yield Figure("P9 mean of 20 seeds", mean(ours), 1.10, "× bound")
    yield Figure("P9 worst of 20 seeds", max(ours), unit="× bound")


def _jobs(chance: Random) -> list[Job]:
    return [
        Job(f"t{number}", 0.05, tuple(write(f"f{file}") for file in chance.sample(range(50), 2)))
        for number in range(200)
    ]

"""P7: makespan over a lower bound, seven workload families, eight slots.

The wait of wide claims is the longest one in each workload, averaged over the seeds like the
makespans; the very longest of all seeds, a noisier figure, is printed beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.bounds import lower_bound
from bench.drive import drive
from bench.figure import Figure, mean
from bench.job import Job, Schedule
from bench.judge import judge
from bench.naive import first_come
from bench.workloads import FAMILIES, SLOTS, without_estimates

SEEDS = range(16)


class _Policy:
    """What one policy made of every family."""

    def __init__(self) -> None:
        self.ratios: dict[str, list[float]] = {family: [] for family in FAMILIES}
        self.worst_waits: list[float] = []
        """Of wide claims, one for each workload that has some."""

    def add(self, family: str, jobs: list[Job], schedule: Schedule, bound: float) -> None:
        judge(schedule, jobs, SLOTS)
        self.ratios[family].append(schedule.makespan(jobs) / bound)
        if any(job.is_wide for job in jobs):
            self.worst_waits.append(schedule.worst_wait_of_wide(jobs))

    @property
    def mean(self) -> float:
        return mean([mean(ratios) for ratios in self.ratios.values()])


def measure() -> Iterator[Figure]:
    naive, guided, blind = _Policy(), _Policy(), _Policy()
    for family, make in FAMILIES.items():
        for seed in SEEDS:
            jobs = make(Random(f"{family} {seed}"))
            bound = lower_bound(jobs, SLOTS)
            naive.add(family, jobs, first_come(jobs, SLOTS), bound)
            guided.add(family, jobs, drive(jobs, SLOTS), bound)
            unknown = without_estimates(jobs)
            blind.add(family, unknown, drive(unknown, SLOTS), bound)
        for name, policy in (("first come", naive), ("with", guided), ("without", blind)):
            yield Figure(f"P7 {family}, {name}", mean(policy.ratios[family]), unit="× bound")
    yield Figure("P7 mean, first come with skipping", naive.mean, unit="× bound")
    yield Figure("P7 mean, with estimates", guided.mean, 1.08, "× bound")
    yield Figure("P7 mean, without estimates", blind.mean, 1.10, "× bound")
    for name, policy in (("with", guided), ("without", blind)):
        ratio = mean(policy.worst_waits) / mean(naive.worst_waits)
        yield Figure(f"P7 wait of wide claims, {name} estimates", ratio, 0.5, "× first come")
        ratio = max(policy.worst_waits) / max(naive.worst_waits)
        yield Figure(f"P7 the same, worst of all seeds, {name}", ratio, 0.5, "× first come")

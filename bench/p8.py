"""P8, online half: known optima of projects and job shops, estimates = true durations."""

from __future__ import annotations

from collections.abc import Iterator

from bench.drive import drive
from bench.figure import Figure, mean
from bench.instances import Instance, job_shops, projects
from bench.judge import judge
from bench.naive import first_come


def measure() -> Iterator[Figure]:
    yield from _family("PSPLIB j30", projects(), 4.5)
    yield from _family("job shop la", job_shops(), 12.6)


def _family(name: str, instances: list[Instance], target: float) -> Iterator[Figure]:
    ours: list[float] = []
    naive: list[float] = []
    for instance in instances:
        jobs, capacities = instance.jobs, instance.capacities
        slots = len(jobs)
        for excess, policy in ((ours, drive), (naive, first_come)):
            schedule = judge(policy(jobs, slots, capacities), jobs, slots, capacities)
            excess.append(100 * (schedule.makespan(jobs) / instance.optimum - 1))
    yield Figure(f"P8 {name}, first come with skipping", mean(naive), unit="% over optimum")
    yield Figure(f"P8 {name}", mean(ours), target, "% over optimum")

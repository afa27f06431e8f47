"""A task together with what only the benchmark knows: how long it will really take."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.model.claim import Claim
from interlock.model.task import Task

EVERYTHING = "**"
"""The one pattern in these workloads that is not a literal path: the whole repository."""


@dataclass(frozen=True, slots=True)
class Job:
    """A task of a workload; it is submitted at `release` and then takes `duration`."""

    id: str
    duration: float
    claims: tuple[Claim, ...] = ()
    after: tuple[str, ...] = ()
    release: float = 0.0
    estimate: float | None = None

    @property
    def is_wide(self) -> bool:
        return any(claim.resource == EVERYTHING for claim in self.claims)

    def task(self) -> Task:
        return Task(self.id, claims=self.claims, after=self.after, estimate=self.estimate)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each job became ready and when it started."""

    ready: dict[str, float]
    starts: dict[str, float]

    def makespan(self, jobs: list[Job]) -> float:
        return max(self.starts[job.id] + job.duration for job in jobs)

    def worst_wait_of_wide(self, jobs: list[Job]) -> float:
        waits = (self.starts[job.id] - self.ready[job.id] for job in jobs if job.is_wide)
        return max(waits, default=0.0)

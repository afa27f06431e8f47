"""What is held at a moment, kept the slow and obvious way, for the baseline and the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench.job import EVERYTHING, Job
from interlock.model.claim import Claim, Mode


class Held:
    """Claims and slots in use. Knows literal paths, `**` and names; no other patterns."""

    def __init__(self, slots: int, capacities: Mapping[str, int]) -> None:
        self.slots = slots
        self.capacities = capacities
        self._running = 0
        self._writes: Counter[str] = Counter()
        self._reads: Counter[str] = Counter()
        self._used: Counter[str] = Counter()

    def full(self) -> bool:
        return self._running >= self.slots

    def fits(self, job: Job) -> bool:
        return not self.full() and all(self._is_free(claim) for claim in job.claims)

    def take(self, job: Job) -> None:
        self._count(job, 1)

    def release(self, job: Job) -> None:
        self._count(job, -1)

    def _is_free(self, claim: Claim) -> bool:
        name = claim.resource
        if not claim.is_path:
            capacity = self.capacities.get(name, 1)
            amount = capacity if claim.mode is Mode.EXCLUSIVE else claim.amount
            return self._used[name] + amount <= capacity
        writes = claim.mode is Mode.WRITE
        if name == EVERYTHING:
            held = self._writes.total() + (self._reads.total() if writes else 0)
            return not held
        if self._writes[EVERYTHING] or self._writes[name]:
            return False
        return not (writes and (self._reads[name] or self._reads[EVERYTHING]))

    def _count(self, job: Job, by: int) -> None:
        self._running += by
        for claim in job.claims:
            name = claim.resource
            if claim.is_path:
                counter = self._writes if claim.mode is Mode.WRITE else self._reads
                counter[name] += by
            else:
                alone = claim.mode is Mode.EXCLUSIVE
                self._used[name] += by * (self.capacities.get(name, 1) if alone else claim.amount)

"""The real kernel on a virtual clock: jobs go in, the schedule it makes comes out."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import groupby

from bench.job import Job, Schedule
from interlock.kernel.instructions import Instruction, Start
from interlock.kernel.kernel import Kernel
from interlock.kernel.stimuli import Ended, Pause, Stimulus, Submit, Unpause


class Drive:
    """Feeds one kernel and keeps the times of starts and ends."""

    def __init__(self, jobs: list[Job], slots: int, capacities: Mapping[str, int]) -> None:
        self._jobs = {job.id: job for job in jobs}
        self._kernel = Kernel(slots=slots, capacities=dict(capacities))
        self._ends: list[tuple[float, int, str]] = []
        self._now = 0.0
        self.starts: dict[str, float] = {}
        self.ends: dict[str, float] = {}

    def run(self) -> None:
        releases = sorted(self._jobs.values(), key=lambda job: job.release)
        batches = [(at, list(batch)) for at, batch in groupby(releases, lambda job: job.release)]
        for at, batch in batches:
            self._pass_time(at)
            self._now = at
            self._send(Submit(tuple(job.task() for job in batch)))
        self._pass_time(float("inf"))

    def _pass_time(self, until: float) -> None:
        while self._ends and self._ends[0][0] <= until:
            self._now = self._ends[0][0]
            together = []
            while self._ends and self._ends[0][0] == self._now:
                _, token, task_id = heappop(self._ends)
                together.append(Ended(task_id, token))
            self._end(together)

    def _end(self, together: list[Ended]) -> None:
        """Ends of one instant are one turn of the runtime's loop: nothing starts between them."""
        several = len(together) > 1
        if several:
            self._send(Pause())
        for ended in together:
            self.ends[ended.task_id] = self._now
            self._send(ended)
        if several:
            self._send(Unpause())

    def _send(self, stimulus: Stimulus) -> None:
        for instruction in self._kernel.handle(stimulus, self._now):
            self._perform(instruction)

    def _perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, Start):
            self.starts[instruction.task_id] = self._now
            end = self._now + self._jobs[instruction.task_id].duration
            heappush(self._ends, (end, instruction.token, instruction.task_id))


def drive(jobs: list[Job], slots: int, capacities: Mapping[str, int] | None = None) -> Schedule:
    """The schedule that the kernel makes of these jobs."""
    driven = Drive(jobs, slots, capacities or {})
    driven.run()
    ready = {
        job.id: max([job.release, *(driven.ends[before] for before in job.after)]) for job in jobs
    }
    return Schedule(ready, driven.starts)

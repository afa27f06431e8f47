"""A schedule that breaks a rule would be a wrong figure: every schedule is checked from outside."""

from __future__ import annotations

from collections.abc import Mapping

from bench.held import Held
from bench.job import Job, Schedule


def judge(
    schedule: Schedule, jobs: list[Job], slots: int, capacities: Mapping[str, int] | None = None
) -> Schedule:
    """The same schedule; an AssertionError if not all ran, or two ran that exclude each other."""
    held = Held(slots, capacities or {})
    starts = schedule.starts
    moments = [(starts[job.id], 1, job) for job in jobs]
    moments += [(starts[job.id] + job.duration, 0, job) for job in jobs]
    # At one instant ends come before starts, but for jobs that take no time at all.
    for at, begins, job in sorted(moments, key=lambda m: (m[0], m[1] or not m[2].duration)):
        if not begins:
            held.release(job)
            continue
        assert at >= schedule.ready[job.id], f"{job.id} started before it was ready"
        assert held.fits(job), f"{job.id} started although something it claims was held"
        held.take(job)
    return schedule

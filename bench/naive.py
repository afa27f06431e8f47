"""The baseline: first come first served, in order of submission, skipping what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from bench.held import Held
from bench.job import Job, Schedule


def first_come(
    jobs: list[Job], slots: int, capacities: Mapping[str, int] | None = None
) -> Schedule:
    """The schedule of a scheduler that knows claims, but neither estimates nor dependents."""
    place = {job.id: number for number, job in enumerate(jobs)}
    missing = {job.id: len(job.after) + 1 for job in jobs}
    followers: dict[str, list[Job]] = {job.id: [] for job in jobs}
    for job in jobs:
        for before in job.after:
            followers[before].append(job)
    held = Held(slots, capacities or {})
    ready: dict[str, float] = {}
    starts: dict[str, float] = {}
    waiting: list[Job] = []
    events = [(job.release, 0, place[job.id]) for job in jobs]
    events.sort()
    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            _, is_end, number = heappop(events)
            job = jobs[number]
            if is_end:
                held.release(job)
            for follower in followers[job.id] if is_end else (job,):
                missing[follower.id] -= 1
                if not missing[follower.id]:
                    ready[follower.id] = now
                    waiting.append(follower)
        waiting.sort(key=lambda job: place[job.id])
        for job in list(waiting):
            if held.full():
                break
            if held.fits(job):
                waiting.remove(job)
                held.take(job)
                starts[job.id] = now
                heappush(events, (now + job.duration, 1, place[job.id]))
    return Schedule(ready, starts)

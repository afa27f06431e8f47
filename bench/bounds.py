"""A lower bound of the makespan that no schedule whatever can beat.

It is the largest of: the critical path; the work over the slots, after release and before what
must follow (a job that excludes all others fills every slot); and the same for every set of jobs
that exclude each other (the writers of a file with its longest reader, heavy cliques of the
conflict graph), as if on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain

from bench.job import EVERYTHING, Job
from interlock.model.claim import Mode


def lower_bound(jobs: list[Job], slots: int) -> float:
    """The bound for jobs listed after their dependencies, with claims on files and `**`."""
    heads, tails = _heads_and_tails(jobs)
    durations = [job.duration for job in jobs]
    best = max(map(sum, zip(heads, durations, tails, strict=True)))
    excluded = _exclusions(jobs)
    alone = len(jobs) - 1
    work = [
        job.duration if others.bit_count() == alone else job.duration / slots
        for job, others in zip(jobs, excluded, strict=True)
    ]
    best = max(best, _work_over_slots(heads, tails, work))
    for clique in chain(_users_of_each_file(jobs), _cliques(excluded, durations)):
        best = max(best, _one_machine(clique, heads, tails, durations))
    return best


def _heads_and_tails(jobs: list[Job]) -> tuple[list[float], list[float]]:
    """For each job the earliest start, and the least time from its end to the end of all."""
    place = {job.id: number for number, job in enumerate(jobs)}
    heads: list[float] = []
    tails = [0.0] * len(jobs)
    for job in jobs:
        before = (heads[place[name]] + jobs[place[name]].duration for name in job.after)
        heads.append(max([job.release, *before]))
    for job in reversed(jobs):
        behind = tails[place[job.id]] + job.duration
        for name in job.after:
            tails[place[name]] = max(tails[place[name]], behind)
    return heads, tails


def _work_over_slots(heads: list[float], tails: list[float], work: list[float]) -> float:
    """`work` is what each job takes of the whole machine's time."""
    by_tail = sorted(range(len(heads)), key=lambda each: -tails[each])
    best = 0.0
    for head in set(heads):
        total = 0.0
        for each in by_tail:
            if heads[each] >= head:
                total += work[each]
                best = max(best, head + total + tails[each])
    return best


def _exclusions(jobs: list[Job]) -> list[int]:
    """For each job the set of those it conflicts with, as bits."""
    writers: dict[str, int] = {}
    readers: dict[str, int] = {}
    for number, job in enumerate(jobs):
        for claim in job.claims:
            users = writers if claim.mode is Mode.WRITE else readers
            users[claim.resource] = users.get(claim.resource, 0) | 1 << number
    everyone = (1 << len(jobs)) - 1
    found = []
    for number, job in enumerate(jobs):
        others = everyone if job.is_wide else writers.get(EVERYTHING, 0)
        for claim in job.claims:
            others |= writers.get(claim.resource, 0)
            if claim.mode is Mode.WRITE:
                others |= readers.get(claim.resource, 0)
        found.append(others & ~(1 << number))
    return found


def _users_of_each_file(jobs: list[Job]) -> Iterable[list[int]]:
    """For each file all that write it or everything, with its longest reader."""
    writers: dict[str, list[int]] = {}
    longest: dict[str, int] = {}
    for number, job in enumerate(jobs):
        for claim in job.claims:
            name = claim.resource
            if claim.mode is Mode.WRITE:
                writers.setdefault(name, []).append(number)
            elif name not in longest or job.duration > jobs[longest[name]].duration:
                longest[name] = number
    everywhere = writers.pop(EVERYTHING, [])
    for name in writers.keys() | longest.keys():
        reader = [longest[name]] if name in longest else []
        yield list({*writers.get(name, []), *everywhere, *reader})


def _cliques(excluded: list[int], durations: list[float]) -> Iterable[list[int]]:
    """From each job on: always add the longest of those that exclude all so far."""
    longest_first = sorted(range(len(durations)), key=lambda each: -durations[each])
    rank = {each: at for at, each in enumerate(longest_first)}
    by_rank = [_renumbered(excluded[each], rank) for each in longest_first]
    for first, candidates in enumerate(by_rank):
        clique = [longest_first[first]]
        while candidates:
            longest = (candidates & -candidates).bit_length() - 1
            clique.append(longest_first[longest])
            candidates &= by_rank[longest]
        yield clique


def _renumbered(members: int, rank: dict[int, int]) -> int:
    found = 0
    for member in _bits(members):
        found |= 1 << rank[member]
    return found


def _bits(members: int) -> Iterable[int]:
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


def _one_machine(
    members: list[int], heads: list[float], tails: list[float], durations: list[float]
) -> float:
    """The best that one machine could do if it might interrupt its jobs: Jackson's schedule."""
    arrivals = sorted(members, key=lambda each: -heads[each])
    left = {each: durations[each] for each in members}
    present: list[tuple[float, int]] = []
    now = best = 0.0
    while arrivals or present:
        if not present:
            now = max(now, heads[arrivals[-1]])
        while arrivals and heads[arrivals[-1]] <= now:
            each = arrivals.pop()
            heappush(present, (-tails[each], each))
        each = present[0][1]
        pause = heads[arrivals[-1]] if arrivals else float("inf")
        if now + left[each] <= pause:
            now += left[each]
            heappop(present)
            best = max(best, now + tails[each])
        else:
            left[each] -= pause - now
            now = pause
    return best

"""The seven workload families of P7, each a function of a seeded generator.

Durations are Pareto with shape 1.3 capped at 60; estimates are off by a log-normal error of
sigma 0.8. Sizes are chosen so that there is enough contention to tell policies apart.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from random import Random

from bench.job import EVERYTHING, Job
from interlock.model.claim import Claim, read, write

SLOTS = 8
TASKS = 400
MEAN_DURATION = 1 + (1 - 60**-0.3) / 0.3
"""Of the capped Pareto distribution."""


def files(chance: Random) -> list[Job]:
    """Many small claims, most of them to write."""
    return _jobs(chance, (_some(chance, 80, (1, 2, 2, 3, 4), 0.6) for _ in range(TASKS)))


def hot_file(chance: Random) -> list[Job]:
    """One file that 30 % of the tasks write."""
    return _jobs(
        chance,
        (
            (*((write("hot"),) if chance.random() < 0.3 else ()), *_some(chance, 80, (1, 2), 1.0))
            for _ in range(TASKS)
        ),
    )


def readers_and_writers(chance: Random) -> list[Job]:
    """Few files, read four times as often as written."""
    return _jobs(chance, (_some(chance, 30, (1, 2, 3), 0.2) for _ in range(TASKS)))


def wide(chance: Random) -> list[Job]:
    """3 % whole-repository claims among small ones, arriving over time at 75 % load."""
    rate = 0.75 * SLOTS / MEAN_DURATION
    jobs, now = [], 0.0
    for number in range(300):
        now += chance.expovariate(rate)
        small = _some(chance, 100, (1, 2), 1.0)
        claims = (write(EVERYTHING),) if chance.random() < 0.03 else small
        jobs.append(_job(chance, number, claims, release=now))
    return jobs


def dag(chance: Random) -> list[Job]:
    """Six layers; each task follows one to three of the layer before."""
    width = TASKS // 6
    jobs: list[Job] = []
    for number in range(6 * width):
        before = number // width * width - width
        chosen = chance.sample(range(width), chance.choice((1, 2, 3)))
        after = tuple(f"t{before + each}" for each in chosen) if before >= 0 else ()
        jobs.append(_job(chance, number, _some(chance, 60, (1, 2), 1.0), after=after))
    return jobs


def sprint(chance: Random) -> list[Job]:
    """Six bursts, each before the last one is worked off."""
    claims = [_some(chance, 50, (1, 2, 2), 0.7) for _ in range(TASKS)]
    burst = math.ceil(TASKS / 6)
    return [
        _job(chance, number, each, release=15.0 * (number // burst))
        for number, each in enumerate(claims)
    ]


def ring(chance: Random) -> list[Job]:
    """Each task claims two neighbours of a ring of 24."""
    places = [chance.randrange(24) for _ in range(TASKS)]
    return _jobs(chance, ((write(f"f{at}"), write(f"f{(at + 1) % 24}")) for at in places))


FAMILIES: dict[str, Callable[[Random], list[Job]]] = {
    "files": files,
    "hot file": hot_file,
    "readers and writers": readers_and_writers,
    "wide": wide,
    "dag": dag,
    "sprint": sprint,
    "ring": ring,
}


def without_estimates(jobs: list[Job]) -> list[Job]:
    return [dataclasses.replace(job, estimate=None) for job in jobs]


def _some(chance: Random, of: int, counts: tuple[int, ...], writing: float) -> tuple[Claim, ...]:
    """Claims on some of `of` files; `writing` is the share of writes."""
    chosen = chance.sample(range(of), chance.choice(counts))
    return tuple(write(f"f{n}") if chance.random() < writing else read(f"f{n}") for n in chosen)


def _jobs(chance: Random, claims: Iterable[tuple[Claim, ...]]) -> list[Job]:
    return [_job(chance, number, each) for number, each in enumerate(claims)]


def _job(
    chance: Random,
    number: int,
    claims: tuple[Claim, ...],
    after: tuple[str, ...] = (),
    release: float = 0.0,
) -> Job:
    duration = min(60.0, chance.paretovariate(1.3))
    estimate = duration * math.exp(chance.gauss(0, 0.8))
    return Job(f"t{number}", duration, claims, after, release, estimate)

"""PSPLIB projects and job shops with known optima, read from the archive in `bench/data`."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

from bench.job import Job
from interlock.model.claim import uses

ARCHIVE = Path(__file__).parent / "data" / "scheduling-instances.tar.gz"


@dataclass(frozen=True, slots=True)
class Instance:
    """A project whose best possible makespan is known."""

    name: str
    jobs: list[Job]
    capacities: dict[str, int]
    optimum: float


def projects() -> list[Instance]:
    """The 480 projects of PSPLIB j30."""
    return list(_instances("rcpsp/j30.sm", ".sm"))


def job_shops() -> list[Instance]:
    """The 40 job shops of Lawrence."""
    return list(_instances("jssp/la", ".jss"))


def _instances(folder: str, suffix: str) -> Iterator[Instance]:
    texts: dict[str, str] = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and member.name.startswith(f"{folder}/"):
                texts[PurePosixPath(member.name).name] = content.read().decode()
    rows = csv.DictReader(io.StringIO(texts["optimum.csv"]))
    optimum = {row["problem"]: float(row["optimum"]) for row in rows}
    for name in sorted(texts):
        if name.endswith(suffix):
            read = _project if suffix == ".sm" else _job_shop
            jobs, capacities = read(texts[name])
            yield Instance(name, jobs, capacities, optimum[name])


def _project(text: str) -> tuple[list[Job], dict[str, int]]:
    """A `.sm` file. Its first and last job are markers that take no time and nothing else."""
    lines = text.splitlines()
    followers = {row[0]: row[3:] for row in _numbers_after(lines, "PRECEDENCE RELATIONS", 2)}
    before: dict[int, list[int]] = {job: [] for job in followers}
    for job, later in followers.items():
        for each in later:
            before[each].append(job)
    (amounts,) = _numbers_after(lines, "RESOURCEAVAILABILITIES", 2)
    capacities = {f"r{number}": amount for number, amount in enumerate(amounts)}
    first, last = min(followers), max(followers)
    jobs = []
    for job, _mode, duration, *needs in _numbers_after(lines, "REQUESTS/DURATIONS", 3):
        if first < job < last:
            claims = tuple(uses(f"r{number}", need) for number, need in enumerate(needs) if need)
            after = tuple(str(each) for each in before[job] if each != first)
            jobs.append(Job(str(job), duration, claims, after, estimate=duration))
    return jobs, capacities


def _numbers_after(lines: list[str], title: str, skip: int) -> list[list[int]]:
    """The rows of whole numbers in the section with this title, `skip` lines below it."""
    at = next(number for number, line in enumerate(lines) if line.startswith(title)) + skip
    rows = []
    for line in lines[at:]:
        if line.startswith("*"):
            break
        rows.append([int(word) for word in line.split()])
    return rows


def _job_shop(text: str) -> tuple[list[Job], dict[str, int]]:
    """A `.jss` file: each row is a chain of (machine, duration)."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    jobs = []
    for row, words in enumerate(rows[1:]):
        steps = list(zip(words[::2], map(int, words[1::2]), strict=True))
        names = [f"{row}.{number}" for number in range(len(steps))]
        before = {later: (earlier,) for earlier, later in pairwise(names)}
        for name, (machine, duration) in zip(names, steps, strict=True):
            claims = (uses(f"machine{machine}", exclusive=True),)
            jobs.append(Job(name, duration, claims, before.get(name, ()), estimate=duration))
    return jobs, {}

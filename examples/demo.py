"""`make demo`: thirteen agents build a library in a scratch git repository, with `interlock run`.

The job is real, in a folder that is gone afterwards. Some tasks claim what others claim, one needs
a second attempt, one finds a real mistake and two are skipped for it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from interlock import Claim, conflicts
from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project
from interlock.plan.records import claims_of

JOB = Path(__file__).parent / "units"


class Span(NamedTuple):
    """From when to when an agent was at work, by its own clock."""

    task_id: str
    began: float
    ended: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pace", type=float, default=1.0, help="0.1: ten times as fast")
    chosen, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="interlock-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "units"
        witness = Path(name) / "witness"
        set_up(folder)
        command = [sys.executable, "-m", "interlock", "run", "plan.yaml", *options]
        print("$ interlock run plan.yaml", flush=True)
        code = run(command, folder, PACE=str(chosen.pace), WITNESS=str(witness))
        if code not in (0, 1):
            return code
        files = git(folder, "status", "--short", "--untracked-files=all").splitlines()
        print(f"\n{len(files)} new files, as git sees them. One agent found a mistake that another")
        print("had made: what depends on it was skipped, everybody else went on.")
        return judge(folder, witness)


def set_up(folder: Path) -> None:
    """A git repository with the plan and its team."""
    shutil.copytree(JOB, folder, ignore=shutil.ignore_patterns("__pycache__", ".interlock"))
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "The plan, and who carries it out")


def run(command: list[str], folder: Path, **variables: str) -> int:
    """Run a command in our terminal; Ctrl-C is its business as well as ours."""
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **variables})
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=demo", "-c", "user.email=demo@example.invalid")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def judge(folder: Path, witness: Path) -> int:
    """Whether no two that conflict were at work at once, by the agents' own clocks."""
    spans = [Span(name, float(began), float(ended)) for name, began, ended in _lines(witness)]
    judged = overlaps(spans, claims_by_task(folder))
    for one, other in judged.found:
        print(f"OVERLAP: {one} and {other}")
    if not judged.found:
        print("By the agents' own clocks no two that conflict", end=" ")
        print(f"({judged.pairs} pairs) were at work at once.")
    return 1 if judged.found else 0


class Judged(NamedTuple):
    """How many attempts were not to overlap, and those that did."""

    pairs: int
    found: list[tuple[Span, Span]]


def overlaps(spans: list[Span], claims: dict[str, tuple[Claim, ...]]) -> Judged:
    """Look at every two attempts at tasks whose claims conflict."""
    pairs = [
        (one, other)
        for one, other in combinations(spans, 2)
        if one.task_id != other.task_id and clash(claims[one.task_id], claims[other.task_id])
    ]
    at_once = [
        (one, other) for one, other in pairs if one.began < other.ended and other.began < one.ended
    ]
    return Judged(len(pairs), at_once)


def claims_by_task(folder: Path) -> dict[str, tuple[Claim, ...]]:
    project = load_project(folder / "interlock.yaml")
    plan = load_plan(folder / "plan.yaml", project)
    return {task.id: claims_of(task, project.agents[task.agent]) for task in plan.tasks}


def clash(ours: tuple[Claim, ...], theirs: tuple[Claim, ...]) -> bool:
    return any(conflicts(mine, their) for mine in ours for their in theirs)


def _lines(witness: Path) -> list[list[str]]:
    return [line.split() for line in witness.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())

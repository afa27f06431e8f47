"""Reading and checking a plan of a thousand tasks, against PyYAML parsing the same file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import yaml

from bench.figure import Figure
from interlock.model.patterns import pattern
from interlock.plan.plan_file import load_plan
from interlock.plan.project_file import load_project

ROUNDS = 9
TASKS = 1_000
PROJECT = """\
agents:
  coder: {command: [my-agent, "{prompt}"]}
protected: .github/**
"""


def measure() -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        project_file, plan_file = Path(folder, "interlock.yaml"), Path(folder, "plan.yaml")
        project_file.write_text(PROJECT)
        plan_file.write_text(_plan())
        project = load_project(project_file)

        def ours() -> None:
            pattern._parse.cache_clear()  # a plan is read once: nothing is known beforehand
            assert len(load_plan(plan_file, project).tasks) == TASKS

        def theirs(loader: Any) -> Callable[[], None]:
            def load() -> None:
                assert len(yaml.load(plan_file.read_bytes(), loader)["tasks"]) == TASKS

            return load

        libyaml = theirs(getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        pairs = [(_seconds(ours), _seconds(libyaml)) for _ in range(ROUNDS)]
        plain = _seconds(theirs(yaml.SafeLoader))
    checked = median(each for each, _ in pairs)
    parsed = median(each for _, each in pairs)
    yield Figure("plan: 1,000 tasks read and checked", 1e3 * checked, unit="ms")
    yield Figure("plan: parsed by PyYAML with libyaml", 1e3 * parsed, unit="ms")
    yield Figure("plan: parsed by PyYAML in Python", 1e3 * plain, unit="ms")
    yield Figure("plan: against PyYAML with libyaml", checked / parsed, 5, "×")


def _plan() -> str:
    lines = ["defaults: {agent: coder, timeout: 10m}", "variables: {lang: English}", "tasks:"]
    for number in range(TASKS):
        lines += [
            f"  - id: task-{number}",
            f"    prompt: Write module {number} with its tests, in {{{{lang}}}}; say what you did.",
            f"    writes: [src/module{number}/**, tests/test_{number}.py]",
            "    reads: docs/",
            f"    priority: {number % 5}",
            f"    estimate: {number % 9 + 1}m",
        ]
        if number >= 10:
            lines.append(f"    after: [task-{number - 10}, task-{number - 7}]")
    return "\n".join(lines) + "\n"


def _seconds(work: Callable[[], None]) -> float:
    gc.collect()
    began = perf_counter()
    work()
    return perf_counter() - began

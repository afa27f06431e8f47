"""P10: what importing costs, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.figure import Figure

ROUNDS = 15
PROGRAM = [str(Path(sys.executable).with_name("interlock"))]


def measure() -> Iterator[Figure]:
    codes = {
        "nothing": "pass",
        "asyncio": "import asyncio",
        "interlock": "import interlock",
        "interlock.Runtime": "from interlock import Runtime",
    }
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            times[name].append(_seconds(code))
    bare = median(times["nothing"])
    for name in ("asyncio", "interlock", "interlock.Runtime"):
        yield Figure(f"P10 import {name}", 1e3 * (median(times[name]) - bare), unit="ms")
    cost = {name: median(each) - bare for name, each in times.items()}
    yield Figure("P10 interlock against asyncio", cost["interlock"] / cost["asyncio"], 1.5, "×")
    ratio = cost["interlock.Runtime"] / cost["asyncio"]
    yield Figure("P10 interlock.Runtime against asyncio", ratio, unit="×")
    version = median(_ran([*PROGRAM, "--version"]) for _ in range(ROUNDS))
    yield Figure("P10 interlock --version against python -c pass", version / bare, 3, "×")
    status = median(_ran([*PROGRAM, "version", "--json"]) for _ in range(ROUNDS))
    yield Figure("P10 a command that needs all of the program", status / bare, unit="×")


def _seconds(code: str) -> float:
    return _ran([sys.executable, "-c", code])


def _ran(command: list[str]) -> float:
    began = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - began

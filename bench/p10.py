"""P10: what importing costs, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from bench.figure import Figure

ROUNDS = 15


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


def _seconds(code: str) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return perf_counter() - began

"""Run the benchmarks named on the command line, or all; print and keep the figures."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from bench import (
    across_threads,
    commands,
    coordinator,
    cron,
    flat,
    p1,
    p2,
    p3,
    p4,
    p5,
    p6,
    p7,
    p8,
    p9,
    p10,
    p11,
    plan,
    steps,
    systems,
)
from bench.figure import Figure

BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "p1": p1.measure,
    "p2": p2.measure,
    "p3": p3.measure,
    "p4": p4.measure,
    "p5": p5.measure,
    "p6": p6.measure,
    "p7": p7.measure,
    "p8": p8.measure,
    "p9": p9.measure,
    "p10": p10.measure,
    "p11": p11.measure,
    "coordinator": coordinator.measure,
    "cron": cron.measure,
    "flat": flat.measure,
    "queue": across_threads.measure,
    "plan": plan.measure,
    "systems": systems.measure,
    "scheduler": steps.measure,
    "commands": commands.measure,
}
LATEST = Path(__file__).parent / "results" / "latest.json"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    print(f"{'benchmark':<52}{'figure':>10} {'':<16}{'target':>8}")
    kept: list[dict[str, object]] = []
    for name in names or BENCHMARKS:
        began = perf_counter()
        for figure in BENCHMARKS[name]():
            target = "" if figure.target is None else f"{figure.target:g}"
            row = f"{figure.name:<52}{figure.value:>10.3f} {figure.unit:<16}{target:>8}"
            print(f"{row}  {figure.verdict}".rstrip(), flush=True)
            kept.append({**figure._asdict(), "verdict": figure.verdict})
        print(f"({name}: {perf_counter() - began:.0f} s)", flush=True)
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    LATEST.parent.mkdir(exist_ok=True)
    LATEST.write_text(
        json.dumps({"machine": machine, "figures": kept}, indent=2, ensure_ascii=False) + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

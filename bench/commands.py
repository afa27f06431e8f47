"""What starting a program costs: `true`, against a plain `subprocess.run` of it."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from bench.figure import Figure
from interlock import Command, Runtime, Task, command
from interlock.execution.call_spec import BackendKind
from interlock.execution.commands.launch import CONTAINMENTS, works
from interlock.execution.processes.process_backend import Commands
from interlock.runtime.ports import Ports, real_backends

ROUNDS = 15
AT_ONCE = 100


def measure() -> Iterator[Figure]:
    ways = [each for each in CONTAINMENTS if works(each)]
    times: dict[str, list[float]] = {each: [] for each in ("plain", *ways)}
    for _ in range(ROUNDS):
        times["plain"].append(_plain())
        for each in ways:
            times[each].append(asyncio.run(_ours(each)))
    plain = median(times["plain"])
    yield Figure("start of `true`, subprocess.run", 1e3 * plain, unit="ms")
    for each in ways:
        yield Figure(f"start of `true`, {each}", 1e3 * median(times[each]), unit="ms")
        yield Figure(f"start of `true`, {each}, against it", median(times[each]) / plain, unit="×")
    yield Figure(f"{AT_ONCE} times `true`, 8 at once", 1e3 * asyncio.run(_many()), unit="ms each")


def _plain() -> float:
    began = perf_counter()
    subprocess.run(["true"], check=True)
    return perf_counter() - began


def _ports(containment: str) -> Ports:
    return Ports(
        backends=lambda loop, house, orphaned: {
            **real_backends(loop, house, orphaned),
            BackendKind.COMMAND: Commands(loop, orphaned, containment),
        }
    )


TRUE: Command = command(["true"])


async def _ours(containment: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(workspace=folder, ports=_ports(containment)) as rt:
            await rt.submit(TRUE)  # the first one makes folders
            began = perf_counter()
            await rt.submit(TRUE)
            return perf_counter() - began


async def _many() -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(workspace=folder, max_parallel=8) as rt:
            await rt.submit(TRUE)
            began = perf_counter()
            await rt.run([Task(str(number), TRUE) for number in range(AT_ONCE)])
            return (perf_counter() - began) / AT_ONCE

"""A cron scheduler that is started, crashed and started again on one journal, with its jobs.

The journal is a real SQLite file on the virtual loop. What agents do is recorded outside of it. A
*life* is one process of the scheduler: it ends with its program or with a crash. Time goes on
between lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from interlock import CronScheduler, TaskContext
from interlock.journal.sqlite import SqliteJournal
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.virtual_loop import Fault, VirtualLoop
from interlock.testing.virtual_run import VirtualRun, simulate
from tests.simulation.faulty_disk import FaultyDisk
from tests.simulation.loop_writer import LoopWriter

T = TypeVar("T")
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class JobFact(NamedTuple):
    """Something that an agent did: `began` or `ended`."""

    life: int
    task: str
    what: str
    minute: float
    """Since noon."""


class Lives:
    """One journal, and all that happened on it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "cron.db"
        self.visits: list[JobFact] = []
        self.life = 0
        self.down = timedelta(seconds=0.25)
        """The time between two lives."""
        self.began = NOON
        self._journal: SqliteJournal | None = None

    def live(
        self,
        program: Callable[[CronScheduler], Awaitable[T]],
        faults: Sequence[Fault] = (),
        disk: FaultyDisk | None = None,
        **options: Any,
    ) -> VirtualRun[T]:
        """One life of a program, to its end or to the crash."""
        self.life += 1
        self._journal = None
        self._disk = disk or FaultyDisk()

        async def main() -> T:
            ports = replace(
                simulated_ports(self.life),
                wall=lambda: self.now().timestamp(),
                open_journal=self._open,
            )
            cron = CronScheduler(journal=self.path, ports=ports, **options)
            return await program(cron)

        run = simulate(main, seed=self.life, faults=faults, deadline=10 * 86400)
        self.began += timedelta(seconds=run.time) + self.down
        if self._journal is not None and run.crashed:
            self._journal.abandon()
        if not run.crashed:
            assert not run.leaked, run.leaked
            assert not run.complaints, run.complaints
        return run

    def now(self) -> datetime:
        return self.began + timedelta(seconds=asyncio.get_running_loop().time())

    def _open(self, path: Path, **options: Any) -> SqliteJournal:
        self._journal = SqliteJournal(path, disk=self._disk, writer=LoopWriter, **options)
        return self._journal

    def agent(self, seconds: float) -> Callable[[TaskContext], Awaitable[str]]:
        """An agent that works for so long."""

        async def work(ctx: TaskContext) -> str:
            self._note(ctx.task.id, "began")
            await asyncio.sleep(seconds)
            self._note(ctx.task.id, "ended")
            return "done"

        return work

    def _note(self, task: str, what: str) -> None:
        loop = asyncio.get_running_loop()
        if not (isinstance(loop, VirtualLoop) and loop.crashed):  # a dead process does nothing
            minute = (self.now() - NOON) / timedelta(minutes=1)
            self.visits.append(JobFact(self.life, task, what, minute))

    def minutes(self, what: str = "began") -> list[float]:
        """When something was done."""
        return [each.minute for each in self.visits if each.what == what]

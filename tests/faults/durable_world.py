"""A world in which a coordinator is started, crashed and started again, and what happened in it.

The real runtime runs on a virtual loop with a real SQLite file. What happens is recorded in a list
outside of the journal. A *life* is one process of the coordinator. It ends with its program or with
a crash: then its loop is dropped, and what it still does is not recorded. Time goes on between
lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from interlock import Handle, Outcome, Quota, Rate, Runtime, TaskContext
from interlock.journal.sqlite import SqliteJournal
from interlock.testing.simulated_ports import EPOCH, simulated_ports
from interlock.testing.virtual_loop import Fault, VirtualLoop
from interlock.testing.virtual_run import VirtualRun, simulate
from tests.simulation.faulty_disk import FaultyDisk
from tests.simulation.loop_writer import LoopWriter

SLOTS = 2
RATE = Quota(2, 5.0)
DOWN = 0.25
"""The time between a crash and the next life, in seconds."""
PATIENCE = 600.0
"""A program that takes longer, in virtual seconds, hangs."""


class Fact(NamedTuple):
    """One thing that happened, whatever the journal says."""

    life: int
    run: str
    at: float
    what: str
    task: str
    more: tuple[Any, ...]


Scenario = Callable[[Runtime, "DurableWorld"], Awaitable[None]]


class DurableWorld:
    """One journal, the lives of its coordinators, and what happened in them."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        folder.mkdir()
        self.path = folder / "journal.db"
        self.facts: list[Fact] = []
        self.life = -1
        self.steps = 0
        """Of the last life."""
        self._run = ""
        self._scenario = scenario
        self._began = EPOCH
        self._at_work: dict[int, TaskContext] = {}
        self._journal: SqliteJournal | None = None

    # -- lives ------------------------------------------------------------------------------

    def live(
        self, disk: FaultyDisk | None = None, faults: Sequence[Fault] = (), *, resume: bool = True
    ) -> VirtualRun[None]:
        """Run the program for one life, to its end or to the crash."""
        self.life += 1
        self._at_work = {}
        self._journal = None
        ports = replace(
            simulated_ports(seed=self.life),
            wall=self._wall,
            open_journal=lambda path, **options: self._open(path, disk or FaultyDisk(), options),
        )

        async def main() -> None:
            limits = {"api": Rate(RATE)}
            runtime = Runtime(
                SLOTS, self.path.parent, self.path, resume, limits=limits, grace=1, ports=ports
            )
            async with runtime as rt:
                self._run = rt.run_id
                await self._scenario(rt, self)
            self.note("closed")

        run = simulate(main, seed=self.life, faults=faults, deadline=PATIENCE)
        self.steps = run.steps
        self._began += run.time + DOWN
        if self._journal is not None:
            self._journal.abandon()
        return run

    def live_on(self) -> None:
        """Run one life without a fault, which must end well."""
        run = self.live()
        run.value()
        assert not run.leaked, run.leaked

    def _open(self, path: Path, disk: FaultyDisk, options: dict[str, Any]) -> SqliteJournal:
        self._journal = SqliteJournal(path, disk=disk, writer=LoopWriter, **options)
        return self._journal

    def _wall(self) -> float:
        try:
            return self._began + asyncio.get_running_loop().time()
        except RuntimeError:  # the Runtime is made before the loop runs
            return self._began

    # -- the facts --------------------------------------------------------------------------

    def note(self, what: str, task: str = "", *more: Any) -> None:
        """Record that something happened, unless the loop has crashed."""
        loop = asyncio.get_running_loop()
        if not (isinstance(loop, VirtualLoop) and loop.crashed):
            self.facts.append(Fact(self.life, self._run, self._wall(), what, task, more))

    def ran(self, ctx: TaskContext) -> None:
        """An agent runs its first line."""
        limit = ctx.task.retry.attempts
        self.note("ran", ctx.task.id, ctx.token, ctx.attempt, limit, ctx.task.key)

    @contextmanager
    def at_work(self, ctx: TaskContext) -> Iterator[None]:
        """Record that an agent uses its slot and its claims."""
        for other in self._at_work.values():
            mine = {each.resource for each in ctx.task.claims if each.is_path}
            both = mine & {each.resource for each in other.task.claims}
            if both:
                self.note("clash", ctx.task.id, other.task.id, sorted(both))
        self._at_work[ctx.token] = ctx
        if len(self._at_work) > SLOTS:
            self.note("crowd", ctx.task.id, len(self._at_work))
        try:
            yield
        finally:
            del self._at_work[ctx.token]

    async def work(self, ctx: TaskContext, seconds: float = 1.0) -> None:
        """Take some time."""
        with self.at_work(ctx):
            await asyncio.sleep(seconds)

    async def acknowledged(self, rt: Runtime, what: str, *tasks: str) -> None:
        """Wait until a request is durable, and record that it was acknowledged."""
        await rt.flush()
        for task in tasks:
            self.note(what, task)

    async def told(self, *handles: Handle[Any]) -> None:
        """Wait for outcomes, in the order in which they come."""

        async def hear(handle: Handle[Any]) -> None:
            self.hears(await handle, handle.task.key)

        async with asyncio.TaskGroup() as group:
            for each in handles:
                group.create_task(hear(each))

    def hears(self, outcome: Outcome[Any], key: str | None = None) -> None:
        """Record that a caller was told an outcome."""
        self.note("told", outcome.task_id, str(outcome.status), outcome.result, key)

    @property
    def outcomes(self) -> dict[str, tuple[Any, ...]]:
        """The last outcome told of each task, by its key if it has one."""
        told = (fact for fact in self.facts if fact.what == "told")
        return {fact.more[2] or fact.task: fact.more[:2] for fact in told}

"""The program that is killed: tasks of every kind, and facts about them outside of the journal.

Each thing that really happens is a line in a file: an agent began (`ran`) or had its effect
(`did`), something was acknowledged (`ack`), an outcome was told (`told`). The line is one write to
a file opened for appending: a killed process loses none that it has written.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from interlock import Handle, Kind, Outcome, Retry, Runtime, Task, TaskContext
from interlock.journal.reader import Reader

TRIES = 3
"""The attempts of tasks that fail at first."""


class Line(NamedTuple):
    """One thing that happened."""

    life: int
    """The number of the process."""
    run: str
    what: str
    task: str
    more: tuple[str, ...]


class Truth:
    """The file of facts, as the program writes it."""

    def __init__(self, folder: Path, life: int) -> None:
        self._file = os.open(folder / "truth", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._life = life
        self.run = ""

    def tell(self, what: str, task: str, *more: object) -> None:
        words = [str(self._life), self.run, what, task, *map(str, more)]
        os.write(self._file, ("\t".join(words) + "\n").encode())


def lines(folder: Path) -> list[Line]:
    """All facts."""
    path = folder / "truth"
    if not path.exists():
        return []
    found = (line.split("\t") for line in path.read_text().splitlines())
    return [Line(int(life), run, what, task, tuple(more)) for life, run, what, task, *more in found]


class Program:
    """Submits the same tasks in every life, with different delays."""

    def __init__(self, folder: Path, seed: int, life: int) -> None:
        self._folder = folder
        self._truth = Truth(folder, life)
        self._chance = Random(f"{seed}-{life}")
        self._life = life

    async def run(self, inherit: bool, begun: Callable[[], object]) -> None:
        """Run one life: resume the last run if it is open, otherwise start one."""
        journal = self._folder / "journal.db"
        resume: bool | None = None
        if journal.exists():
            with Reader(journal) as reader:
                last = reader.last_run()
                resume = last is not None and (last.is_open or inherit)
        async with Runtime(4, self._folder, journal, resume, durability="normal") as rt:
            self._truth.run = rt.run_id
            self._truth.tell("began", "")
            begun()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._answer(rt))
                await self._submit_all(rt, group)
        self._truth.tell("closed", "")

    async def _submit_all(self, rt: Runtime, group: asyncio.TaskGroup) -> None:
        handles: list[Handle[Any]] = [rt.submit(self.step, id="first", writes="a/**")]
        for number in range(4):
            before = handles[-1] if number else None
            handles.append(rt.submit(self.step, before, id=f"chain-{number}", writes=f"a/{number}"))
        await self._acknowledge(rt, handles)
        more: list[Handle[Any]] = [
            rt.submit(self.flaky, id=f"flaky-{number}", retry=Retry(TRIES, 0.01)) for number in "ab"
        ]
        more += [rt.submit(self.block, id=f"block-{n}", after=["first"]) for n in "ab"]
        # The name differs in each life: only the key says that it is the same task.
        more += [rt.submit(self.step, None, id=f"pay-{n}-{self._life}", key=n) for n in "kl"]
        more += [rt.submit(self.parent, id=f"parent-{n}", retry=Retry(2, 0)) for n in "pq"]
        more.append(rt.submit(self.asks, id="asks"))
        more.append(rt.submit(self.step, id="unwanted", after=["chain-3"]))
        await self._acknowledge(rt, more)
        if rt.cancel("unwanted"):
            await rt.flush()
            self._truth.tell("ack", "unwanted", "cancelled")
        for each in (*handles, *more):
            group.create_task(self._tell(each))
        await self._from_a_thread(rt)
        for outcome in await rt.map(self.mapped, range(3)):
            self._told(outcome.task_id, outcome)

    async def _acknowledge(self, rt: Runtime, handles: list[Handle[Any]]) -> None:
        await rt.flush()
        for handle in handles:
            self._truth.tell("ack", handle.task_id, "submitted")

    async def _from_a_thread(self, rt: Runtime) -> None:
        done: asyncio.Future[Handle[Any]] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def submit() -> None:
            handle = rt.submit(self.step, id="from-a-thread")
            self._truth.tell("ack", "from-a-thread", "submitted")
            loop.call_soon_threadsafe(done.set_result, handle)

        threading.Thread(target=submit, daemon=True).start()
        await self._tell(await done)

    async def _tell(self, handle: Handle[Any]) -> None:
        self._told(handle.task_id, await handle)

    def _told(self, task_id: str, outcome: Outcome[Any]) -> None:
        self._truth.tell("told", task_id, outcome.status, outcome.result, outcome.reason)

    async def _answer(self, rt: Runtime) -> None:
        """Answer the questions, until all have been answered."""
        async for event in rt.events():
            if event.kind is Kind.NEEDS_YOU and rt.questions():
                rt.answer("asks", "blue")
                await rt.flush()
                self._truth.tell("ack", "asks", "answered")
            if event.kind in (Kind.SETTLED, Kind.REUSED) and event.task_id == "asks":
                return

    # -- agents -----------------------------------------------------------------------------

    def _began(self, ctx: TaskContext) -> None:
        self._truth.tell("ran", ctx.task.id, ctx.token, ctx.attempt, ctx.task.key or "")

    def _did(self, ctx: TaskContext) -> str:
        self._truth.tell("did", ctx.task.id, ctx.token)
        return f"{ctx.task.id}!"

    async def _pause(self, ctx: TaskContext) -> None:
        await ctx.sleep(self._chance.random() * 0.004)

    async def step(self, ctx: TaskContext, _: object = None) -> str:
        self._began(ctx)
        await self._pause(ctx)
        return self._did(ctx)

    async def mapped(self, ctx: TaskContext, item: int) -> str:
        return await self.step(ctx)

    async def flaky(self, ctx: TaskContext) -> str:
        self._began(ctx)
        await self._pause(ctx)
        if ctx.attempt < TRIES:
            raise OSError("not yet")
        return self._did(ctx)

    def block(self, ctx: TaskContext) -> str:
        self._began(ctx)
        ctx.sleep(0.002).wait()
        return self._did(ctx)

    async def parent(self, ctx: TaskContext) -> str:
        self._began(ctx)
        own = [Task(f"{ctx.plain_id}-{n}", self.step) for n in "xyz"]
        (await ctx.run(own)).raise_for_failures()
        await ctx.submit(self.step).result()  # with a generated name
        return self._did(ctx)

    async def asks(self, ctx: TaskContext) -> str:
        self._began(ctx)
        answer = await ctx.ask("Which colour?")
        await self._pause(ctx)
        self._did(ctx)
        return answer


def live(folder: Path, seed: int, life: int, inherit: bool, begun: Callable[[], object]) -> None:
    """Run one life, in a process of its own, to its end."""
    program = Program(folder, seed, life)
    try:
        asyncio.run(program.run(inherit, begun))
    except BaseException as error:
        program._truth.tell("error", "", repr(error).replace("\n", " "))
        raise

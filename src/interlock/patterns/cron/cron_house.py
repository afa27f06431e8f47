"""The run of a scheduler: opened and left, renewed when it has grown old, its book written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from interlock.errors import InterlockError, NotRunning, ShuttingDown
from interlock.patterns.cron.book import Book
from interlock.patterns.cron.job import name_of
from interlock.patterns.cron.recall import abandon
from interlock.runtime.log import LOGGER
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.runtime import Runtime
from interlock.runtime.shared import SharedRuntime

T = TypeVar("T")

RENEWED_AFTER = 1_000
"""A run knows the ids of all its tasks, a journal forgets and takes up runs as a whole, and a
scheduler has no end: after so many tasks it begins a new run, in a moment in which nothing is under
way. If there is none, a run keeps no more outcomes than that."""


class House:
    """A Runtime for a scheduler, and for those who run something by hand.

    It is `kept` while the clock runs. Then the book in memory is the truth; otherwise other
    processes may have written to the one on disk.
    """

    def __init__(self, options: Mapping[str, Any], book: Book) -> None:
        Runtime(**options)  # at once: it has the errors for impossible options
        self._book = book
        self._is_durable = options["journal"] is not None
        self._shared = SharedRuntime(lambda: Runtime(**options), self._opened)
        self._chores: set[asyncio.Task[None]] = set()
        self._writing = False
        self._door: LoopThread | None = None
        """The way to the thread of the event loop, while somebody is in there."""
        self._renewal: asyncio.Task[None] | None = None
        self.is_kept = False
        self.names: set[str] = set()
        """Ids of tasks that this run has seen: it wants each of them once."""

    def _opened(self, runtime: Runtime) -> None:
        self.names = {each.task_id for each in runtime.outcomes} | set(runtime.unsubmitted)
        if self._is_durable and not self.is_kept:
            self._book.load(runtime.records("cron"))

    @property
    def runtime(self) -> Runtime:
        """The Runtime that is open now; NotRunning if none is."""
        return self._shared.runtime

    @property
    def is_renewing(self) -> bool:
        """Whether one run is being left for another one."""
        return self._renewal is not None

    @property
    def takes_tasks(self) -> bool:
        """Whether the clock may use it just now."""
        return self.is_kept and not self.is_renewing

    def fresh(self, job_id: str, which: str) -> str:
        """A name for a task that this run has not seen yet."""
        name = first = name_of(job_id, which)
        count = 1
        while name in self.names:
            count += 1
            name = f"{first}~{count}"
        self.names.add(name)
        return name

    # -- coming and going -------------------------------------------------------------------

    async def enter(self) -> Runtime:
        """Come in; to be followed by `leave()`. A renewal is waited for: it has begun already."""
        while self._renewal is not None:
            await asyncio.wait([self._renewal])
        runtime = await self._shared.enter()
        self._door = LoopThread(asyncio.get_running_loop())
        return runtime

    async def leave(self) -> None:
        """Go; after the last one the run is closed."""
        self._shared.leave()
        await self._shared.vacated()
        if not self._shared.is_open:
            self._door = None

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call it on the thread of the event loop; here, while nobody is in there."""
        return function(*args) if self._door is None else self._door.call(function, *args)

    def check_loop(self) -> None:
        """Raise on any other event loop than the one this runs on."""
        self._shared.check_loop()

    def refuse(self) -> None:
        """Let nobody in from now on."""
        self._shared.refuse()

    async def close(self, quiet: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Write down what is left when all is `quiet`, and close the run."""
        if self._chores:
            await asyncio.wait(self._chores)
        try:
            runtime = self._shared.runtime
        except NotRunning:
            pass
        else:
            if self.is_kept:
                abandon(runtime)
            await quiet()
            await self.write(runtime)
        self.is_kept = False
        try:
            await self._shared.close()
        finally:
            self._door = None

    def renew_if_old(
        self, renewed: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        """Begin a new run if this one has seen enough. To be called when nothing is under way."""
        alone = self._shared.guests == 1  # nobody but the clock: others may be about to submit
        if len(self.names) >= RENEWED_AFTER and alone and self.takes_tasks:
            self._renewal = self._chore(self._renew(renewed, failed), "cron-renewal")

    async def _renew(
        self, renewed: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        try:
            await self.write(self.runtime)
            abandon(self.runtime)
            self._shared.leave()
            await self._shared.vacated()
            await self._shared.enter()
        except ShuttingDown:
            return  # it is being left
        except InterlockError as error:
            failed(error)
        finally:
            self._renewal = None
        renewed()

    # -- the book ---------------------------------------------------------------------------

    def write_soon(self) -> None:
        """Have the book written down, while somebody is there to do it."""
        if self._is_durable and self.takes_tasks and not self._writing:
            self._chore(self.write(self.runtime), "cron-book")
            self._writing = True  # only now: if it had not begun, nobody would ever take it back

    async def write(self, runtime: Runtime) -> None:
        """Write down what has changed; it is there for good when this returns."""
        if self._is_durable:
            try:
                await self._book.write(runtime.records("cron"), runtime.flush)
            except InterlockError as error:
                LOGGER.error("cron_book_not_written", exc_info=error)
            finally:
                self._writing = False

    def _chore(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

"""Attempts of async agents: each is a task on the runtime's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from interlock.execution.backend import AttemptJob, Caps
from interlock.execution.ending import Ending, raised, returned

_REMINDERS = 4
"""An agent that swallows its cancellation is cancelled again, this often within the grace.

Not at once, and not because somebody cancels it twice: whoever cleans up in a `finally` must be let
finish.
"""


class Coroutines:
    """The backend of async agents.

    All attempts are children of one TaskGroup, which lives in a task of its own: a group cannot
    let go of a child that will not end, but the runtime has to go on without it.
    """

    caps = Caps(kill=False)

    def __init__(self, name: str) -> None:
        self._name = name
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._reminders: dict[int, asyncio.TimerHandle] = {}
        self._closing: asyncio.Future[None] | None = None
        self._house: asyncio.Task[None] | None = None

    async def open(self, fell: Callable[[BaseException], None]) -> None:
        """Make the group, before the first job; `fell` is told if it ever comes to an end early."""
        loop = asyncio.get_running_loop()
        self._closing = loop.create_future()
        opened: asyncio.Future[None] = loop.create_future()
        self._house = loop.create_task(self._live(opened), name=self._name)
        self._house.add_done_callback(partial(_tell, fell))
        await asyncio.wait([opened, self._house], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise RuntimeError(f"task {self._name!r}, which all attempts live in, did not begin")

    async def _live(self, opened: asyncio.Future[None]) -> None:
        assert self._closing is not None
        async with asyncio.TaskGroup() as self._group:
            if not opened.done():  # whoever was opening it may have been cancelled
                opened.set_result(None)
            await self._closing

    def submit(self, job: AttemptJob) -> None:
        assert self._group is not None, "open() comes first"
        run = self._run(job)
        try:
            task = self._group.create_task(run, name=job.name, context=job.context)
        except RuntimeError as error:  # the group is being torn down
            run.close()
            job.sink.ended(job.token, raised(error))
            return
        self._tasks[job.token] = task
        task.add_done_callback(partial(self._report_unstarted, job))

    async def _run(self, job: AttemptJob) -> None:
        ending: Ending
        try:
            ending = returned(await job.call())
        except GeneratorExit as error:
            if not self._is_current(job):
                raise  # we are being thrown away: nobody will ever run this loop again
            ending = raised(error)
        except BaseException as error:  # noqa: BLE001 - an agent may raise anything; it is its own
            ending = raised(error)
        finally:
            self._forget(job.token)
        job.sink.ended(job.token, ending)

    def _is_current(self, job: AttemptJob) -> bool:
        try:
            return asyncio.current_task() is self._tasks.get(job.token)
        except RuntimeError:  # no loop runs at all
            return False

    def _forget(self, token: int) -> bool:
        reminder = self._reminders.pop(token, None)
        if reminder is not None:
            reminder.cancel()
        return self._tasks.pop(token, None) is not None

    def _report_unstarted(self, job: AttemptJob, task: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step never runs a line of its coroutine."""
        if self._forget(job.token):
            job.sink.ended(job.token, raised(asyncio.CancelledError()))

    def cancel(self, token: int, grace: float) -> None:
        task = self._tasks.get(token)
        if task is None:
            return
        pause = max(grace / _REMINDERS, 0.001)
        reminder = self._reminders.get(token)
        if reminder is None:
            task.cancel()
        elif reminder.when() > task.get_loop().time() + pause:
            reminder.cancel()  # the grace has become shorter
        else:
            return
        self._remind_later(task, token, pause, _REMINDERS)

    def _remind_later(self, task: asyncio.Task[None], token: int, pause: float, left: int) -> None:
        self._reminders[token] = task.get_loop().call_later(
            pause, self._remind, task, token, pause, left - 1
        )

    def _remind(self, task: asyncio.Task[None], token: int, pause: float, left: int) -> None:
        if token in self._tasks:
            task.cancel()
            # Whoever still resists is asked ever more rarely, but never given up.
            self._remind_later(task, token, pause if left > 0 else 2 * pause, left)

    async def close(self) -> None:
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        if self._house is not None and not self._tasks:
            await asyncio.wait([self._house])


def _tell(fell: Callable[[BaseException], None], house: asyncio.Task[None]) -> None:
    if house.cancelled():
        fell(asyncio.CancelledError("the task that all attempts live in was cancelled"))
    elif (error := house.exception()) is not None:
        fell(error)

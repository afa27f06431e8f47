"""Attempts of async agents: each is an asyncio task on the event loop of its run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from interlock.execution.backend import AttemptJob, Caps
from interlock.execution.ending import Ending, raised, returned

_REMINDERS = 4
"""An agent that swallows its cancellation is cancelled again, this often within the grace.

Not at once, and not each time `cancel` is called: an agent that cleans up in a `finally` block has
to be able to finish that.
"""


class Coroutines:
    """The backend of async agents.

    All attempts are children of one TaskGroup, which is entered in a task of its own: leaving a
    group waits for every child, and the runtime has to go on without a child that does not end.
    """

    caps = Caps(kill=False)

    def __init__(self, name: str) -> None:
        self._name = name
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._reminders: dict[int, asyncio.TimerHandle] = {}
        self._closing: asyncio.Future[None] | None = None
        self._group_task: asyncio.Task[None] | None = None

    async def open(self, crashed: Callable[[BaseException], None]) -> None:
        """Enter the group, before the first job; `crashed` is called if it ends too early."""
        loop = asyncio.get_running_loop()
        self._closing = loop.create_future()
        opened: asyncio.Future[None] = loop.create_future()
        self._group_task = loop.create_task(self._hold_group(opened), name=self._name)
        self._group_task.add_done_callback(partial(_tell_of_crash, crashed))
        await asyncio.wait([opened, self._group_task], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise RuntimeError(f"the task {self._name!r}, which holds all attempts, did not start")

    async def _hold_group(self, opened: asyncio.Future[None]) -> None:
        assert self._closing is not None
        async with asyncio.TaskGroup() as self._group:
            if not opened.done():  # `open` may have been cancelled meanwhile
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
                raise  # this coroutine is being discarded: its loop will never run again
            ending = raised(error)
        except BaseException as error:  # noqa: BLE001 - whatever an agent raises is its own failure
            ending = raised(error)
        finally:
            self._forget(job.token)
        job.sink.ended(job.token, ending)

    def _is_current(self, job: AttemptJob) -> bool:
        try:
            return asyncio.current_task() is self._tasks.get(job.token)
        except RuntimeError:  # no loop runs at all
            return False

    def _forget(self, token: int) -> None:
        self._tasks.pop(token, None)
        reminder = self._reminders.pop(token, None)
        if reminder is not None:
            reminder.cancel()

    def _report_unstarted(self, job: AttemptJob, task: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step never runs a line of its coroutine."""
        if job.token in self._tasks:
            self._forget(job.token)
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
            # One that still resists is cancelled less and less often, but never given up.
            self._remind_later(task, token, pause if left > 0 else 2 * pause, left)

    async def close(self) -> None:
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        if self._group_task is not None and not self._tasks:
            await asyncio.wait([self._group_task])


def _tell_of_crash(
    crashed: Callable[[BaseException], None], group_task: asyncio.Task[None]
) -> None:
    if group_task.cancelled():
        crashed(asyncio.CancelledError("the task whose TaskGroup holds all attempts was cancelled"))
    elif (error := group_task.exception()) is not None:
        crashed(error)

"""`ShutdownManager`: refuse new tasks, give running ones a grace period, then clean up."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from interlock.errors import InvalidOption, ShuttingDown
from interlock.model.duration import Duration, seconds
from interlock.model.stable_names import stable_name
from interlock.runtime.log import LOGGER
from interlock.runtime.own_thread import in_own_thread

Strategy = Literal["cooperative", "immediate", "checkpoint"]
_STRATEGIES = ("cooperative", "immediate", "checkpoint")
_CANCEL_GRACE = 5.0
"""Seconds that cancelled tasks may take to end."""


@stable_name("data.shutdown_result")
@dataclass(frozen=True)
class ShutdownResult:
    """The result of a shutdown: how many tasks ended how, and whether clean-up completed."""

    strategy: str
    tasks_completed: int
    """Ended by themselves within the grace period, without an exception."""
    tasks_saved: int
    """Saved, and then cancelled."""
    tasks_interrupted: int
    """Cancelled without being saved, by the shutdown or within the grace period."""
    still_running: tuple[str, ...]
    """Tasks that did not stop although they were cancelled."""
    cleanup_completed: bool
    duration_seconds: float
    tasks_failed: int = 0
    """Raised an exception within the grace period."""


class ShutdownManager:
    """Tracks running tasks, and ends them on request.

    *cooperative* lets running tasks finish within `grace_seconds` (they can ask
    `is_shutting_down()` at every turn) and then cancels them. *immediate* cancels at once.
    *checkpoint* is cooperative, and calls `save(task_id)` before it cancels a task.

    `save` is async, or a plain function, which is called in a thread. A task is saved unless that
    raises, returns False or takes longer than `save_seconds`.
    """

    def __init__(
        self,
        strategy: Strategy = "cooperative",
        *,
        grace_seconds: Duration = 30.0,
        cleanup_seconds: Duration = 5.0,
        save: Callable[[str], Awaitable[bool | None] | bool | None] | None = None,
        save_seconds: Duration = 5.0,
    ) -> None:
        if strategy not in _STRATEGIES:
            allowed = ", ".join(map(repr, _STRATEGIES))
            raise InvalidOption(f"strategy is {strategy!r}; it must be one of {allowed}")
        if (save is not None) != (strategy == "checkpoint"):
            raise InvalidOption(
                "save= requires strategy 'checkpoint', and the strategy requires save="
            )
        self.strategy = strategy
        self._grace = 0.0 if strategy == "immediate" else seconds(grace_seconds, "grace_seconds")
        self._cleanup_seconds = seconds(cleanup_seconds, "cleanup_seconds")
        self._save = None if save is None else _off_the_loop(save)
        self._save_seconds = seconds(save_seconds, "save_seconds")
        self._tasks: dict[str, list[asyncio.Task[Any]]] = {}
        """By id, which concurrent groups may share."""
        self._cleanups: list[Callable[[], Awaitable[None] | None]] = []
        self._draining = False
        self._shutdown: asyncio.Task[ShutdownResult] | None = None

    def is_shutting_down(self) -> bool:
        """Whether tasks should finish; agents may ask at every turn."""
        return self._draining

    def register_task(self, task_id: str, asyncio_task: asyncio.Task[Any]) -> None:
        """Register a running task; raises ShuttingDown once a shutdown has started."""
        if self._draining:
            raise ShuttingDown(f"task {task_id!r} was not started: a shutdown is in progress")
        self._tasks.setdefault(task_id, []).append(asyncio_task)

    def unregister_task(self, task_id: str) -> None:
        """Unregister a task that has ended; where several share the id, the calling one."""
        running = self._tasks.pop(task_id, [])
        try:
            caller = asyncio.current_task()
        except RuntimeError:  # called outside an event loop
            caller = None
        left = [each for each in running if each is not caller]
        if len(left) < len(running) and left:
            self._tasks[task_id] = left

    def register_cleanup(self, callback: Callable[[], Awaitable[None] | None]) -> None:
        """Call this once all tasks have ended, in the order of registration."""
        self._cleanups.append(callback)

    async def initiate_shutdown(self) -> ShutdownResult:
        """End all tasks and clean up. Idempotent: a second call waits for the same shutdown."""
        self._draining = True
        if self._shutdown is None:
            self._shutdown = asyncio.get_running_loop().create_task(self._run(), name="shutdown")
        # Shielded: a caller that stops waiting must not leave a shutdown half done.
        return await asyncio.shield(self._shutdown)

    async def _run(self) -> ShutdownResult:
        loop = asyncio.get_running_loop()
        began = loop.time()
        running = {task: name for name, tasks in self._tasks.items() for task in tasks}
        left = await _wait_for_end(running, self._grace)
        ended = [task for task in running if task not in left]
        cancelled = sum(task.cancelled() for task in ended)
        failed = sum(_has_failed(task, running[task]) for task in ended)
        # One at a time: two calls may not be possible at once, for instance on one connection.
        saved = sum([await self._try_save(running[task]) for task in left])
        for task in left:
            # Also of a task that does not stop in time: its exception is logged when it ends.
            task.add_done_callback(partial(_has_failed, task_id=running[task]))
            task.cancel()
        stuck = await _wait_for_end(left, _CANCEL_GRACE)
        return ShutdownResult(
            strategy=self.strategy,
            tasks_completed=len(ended) - cancelled - failed,
            tasks_saved=saved,
            tasks_interrupted=len(left) - saved + cancelled,
            still_running=tuple(running[task] for task in stuck),
            cleanup_completed=await self._clean_up(),
            duration_seconds=loop.time() - began,
            tasks_failed=failed,
        )

    async def _try_save(self, task_id: str) -> bool:
        """Save a task before it is cancelled; whether that succeeded in time."""
        if self._save is None:
            return False
        saved = await _bounded(_succeeds("save", self._save, task_id), self._save_seconds)
        if saved is None:
            LOGGER.warning("save_timed_out", extra={"interlock": {"task_id": task_id}})
        return bool(saved)

    async def _clean_up(self) -> bool:
        """Call all clean-ups; whether each succeeded in time. A failure does not stop the next."""
        done: list[bool] = []

        async def in_order() -> bool:
            for callback in self._cleanups:
                done.append(await _succeeds("cleanup", callback))
            return True

        if await _bounded(in_order(), self._cleanup_seconds) is None:
            LOGGER.warning("cleanup_timed_out", extra={"interlock": {"done": len(done)}})
        return sum(done) == len(self._cleanups)


async def _wait_for_end(
    tasks: dict[asyncio.Task[Any], str] | list[asyncio.Task[Any]], most: float
) -> list[asyncio.Task[Any]]:
    """Wait for tasks, at most `most` seconds; return those that still run, in order."""
    if tasks and most:
        await asyncio.wait(tasks, timeout=most)
    return [task for task in tasks if not task.done()]


async def _bounded(call: Coroutine[Any, Any, bool], most: float) -> bool | None:
    """Await a call; return None if it takes longer than `most` seconds.

    It is then cancelled and not waited for: a callback may ignore the cancellation.
    """
    task = asyncio.get_running_loop().create_task(call)
    try:
        await asyncio.wait([task], timeout=most)
        return task.result() if task.done() and not task.cancelled() else None
    finally:
        task.cancel()


def _off_the_loop(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Call a plain function in a thread, where it cannot block the event loop."""
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(
        getattr(callback, "__call__", None)  # noqa: B004 - to inspect it
    ):
        return callback

    async def in_a_thread(*args: Any) -> Any:
        returned = await in_own_thread(partial(callback, *args), "shutdown-save")
        return await returned if inspect.isawaitable(returned) else returned

    return in_a_thread


def _has_failed(task: asyncio.Task[Any], task_id: str) -> bool:
    """Whether a task that has ended raised an exception. Logs it, as no other code may do so."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        LOGGER.warning(
            "task_failed_in_shutdown", exc_info=error, extra={"interlock": {"task_id": task_id}}
        )
    return error is not None


async def _succeeds(what: str, callback: Callable[..., Any], *args: Any) -> bool:
    try:
        returned = callback(*args)
        if inspect.isawaitable(returned):
            returned = await returned
    except Exception as error:  # noqa: BLE001 - the user's callback; the shutdown continues
        about = {"callback": repr(callback)}
        LOGGER.log(logging.ERROR, f"{what}_failed", exc_info=error, extra={"interlock": about})
        return False
    return returned is not False

"""`ShutdownManager`: refuse new tasks, give running ones a grace period, then clean up."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from interlock.errors import InvalidOption, ShuttingDown
from interlock.model.duration import Duration, seconds
from interlock.runtime.log import LOGGER

Strategy = Literal["cooperative", "immediate", "checkpoint"]
_STRATEGIES = ("cooperative", "immediate", "checkpoint")
_CANCEL_GRACE = 5.0
"""Seconds that cancelled tasks may take to end."""


@dataclass(frozen=True)
class ShutdownResult:
    """The result of a shutdown: how many tasks ended how, and whether clean-up completed."""

    strategy: str
    tasks_completed: int
    """Ended by themselves within the grace period."""
    tasks_saved: int
    """Saved, and then cancelled."""
    tasks_interrupted: int
    """Cancelled without being saved."""
    still_running: tuple[str, ...]
    """Tasks that did not stop although they were cancelled."""
    cleanup_completed: bool
    duration_seconds: float


class ShutdownManager:
    """Tracks running tasks, and ends them on request.

    *cooperative* lets running tasks finish within `grace_seconds` (they can ask
    `is_shutting_down()` at every turn) and then cancels them. *immediate* cancels at once.
    *checkpoint* is cooperative, and calls `save(task_id)` before it cancels a task.
    """

    def __init__(
        self,
        strategy: Strategy = "cooperative",
        *,
        grace_seconds: Duration = 30.0,
        cleanup_seconds: Duration = 5.0,
        save: Callable[[str], Awaitable[None] | None] | None = None,
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
        self._save = save
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
        caller = asyncio.current_task()
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
        saved = [await self._try_save(running[task]) for task in left]
        for task in left:
            task.cancel()
        stuck = await _wait_for_end(left, _CANCEL_GRACE)
        return ShutdownResult(
            strategy=self.strategy,
            tasks_completed=len(running) - len(left),
            tasks_saved=sum(saved),
            tasks_interrupted=len(left) - sum(saved),
            still_running=tuple(running[task] for task in stuck),
            cleanup_completed=await self._clean_up(),
            duration_seconds=loop.time() - began,
        )

    async def _try_save(self, task_id: str) -> bool:
        """Save a task before it is cancelled; whether that succeeded."""
        return self._save is not None and await _succeeds("save", self._save, task_id)

    async def _clean_up(self) -> bool:
        """Call all clean-ups; whether each succeeded in time. A failure does not stop the next."""
        done = []
        try:
            async with asyncio.timeout(self._cleanup_seconds):
                for callback in self._cleanups:
                    done.append(await _succeeds("cleanup", callback))
        except TimeoutError:
            LOGGER.warning("cleanup_timed_out", extra={"interlock": {"done": len(done)}})
        return sum(done) == len(self._cleanups)


async def _wait_for_end(
    tasks: dict[asyncio.Task[Any], str] | list[asyncio.Task[Any]], most: float
) -> list[asyncio.Task[Any]]:
    """Wait for tasks, at most `most` seconds; return those that still run, in order."""
    if tasks and most:
        await asyncio.wait(tasks, timeout=most)
    return [task for task in tasks if not task.done()]


async def _succeeds(what: str, callback: Callable[..., Any], *args: Any) -> bool:
    try:
        returned = callback(*args)
        if inspect.isawaitable(returned):
            await returned
    except Exception as error:  # noqa: BLE001 - the user's callback; the shutdown continues
        about = {"callback": repr(callback)}
        LOGGER.log(logging.ERROR, f"{what}_failed", exc_info=error, extra={"interlock": about})
        return False
    return True

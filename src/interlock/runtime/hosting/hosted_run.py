"""One Runtime from its opening to its end, in a task or in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from interlock.errors import AttemptsStillAlive
from interlock.runtime.hosting.milestone import Milestone
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.runtime import Runtime

T = TypeVar("T")

_ABANDONED: list[set[asyncio.Task[Any]]] = []
"""Tasks that did not end, kept referenced: destroying them would run their `finally` blocks."""


class _CancelWork(Exception):
    """Leaving the block of a Runtime by an error is how its work is cancelled."""


class HostedRun:
    """A Runtime, its callers and its event loop.

    After `opened`, either `runtime` is set or the opening failed with `error`; after `closed`,
    `error` is what closing raised.
    """

    def __init__(
        self,
        make: Callable[[], Runtime],
        on_open: Callable[[Runtime], None],
        on_closed: Callable[[HostedRun], None],
        predecessor: HostedRun | None,
    ) -> None:
        self._make = make
        self._on_open = on_open
        self._on_closed = on_closed
        self.predecessor = predecessor
        self.callers = 0
        self.runtime: Runtime | None = None
        self.error: BaseException | None = None
        self.has_waiter = False
        """Whether a caller waits for the end of this run and will raise its error."""
        self.opened = Milestone()
        self.closed = Milestone()
        self.loop: asyncio.AbstractEventLoop | None = None
        """Set from the start for a run on a caller's loop; otherwise once its thread has one."""
        self.loop_thread: LoopThread | None = None
        self.in_thread = False
        self._task: asyncio.Task[None] | None = None
        self._ends: asyncio.Future[bool] | None = None
        self._cancels: bool | None = None
        self._is_sealed = False
        # Reentrant: the garbage collector may close a generator, which leaves, at any statement.
        self._lock = threading.RLock()

    # -- beginning --------------------------------------------------------------------------

    def start_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run as a task of the caller's loop, not of the caller: callers may end in any order."""
        self.loop, self.loop_thread = loop, LoopThread(loop)
        self._task = loop.create_task(self._live(), name="interlock")
        self._task.add_done_callback(self._task_done)

    def start_in_thread(self) -> None:
        """Run on a loop in a new thread. It is a daemon: it does not hold up the interpreter."""
        self.in_thread = True
        threading.Thread(target=self._thread_main, name="interlock", daemon=True).start()

    def _thread_main(self) -> None:
        try:
            run_abandoning_zombies(self._live())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._finish(error)
        else:
            self._finish(None)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._finish(asyncio.CancelledError() if task.cancelled() else task.exception())

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:  # `end` may be called from another thread before there is a loop
            self.loop, self.loop_thread = loop, self.loop_thread or LoopThread(loop)
            self._ends = loop.create_future()
            if self._cancels is not None:
                self._ends.set_result(self._cancels)
        if self.predecessor is not None:
            await self.predecessor.closed.wait()
            self.predecessor = None
        if self.is_ending:
            return  # every caller gave up before it was opened
        with contextlib.suppress(_CancelWork):
            async with self._make() as runtime:
                # Restoring a run emits events. They are not meant for callers that enter now.
                await runtime.flush()
                self._on_open(runtime)
                self.runtime = runtime
                self.opened.reach()
                if await self._ends:
                    raise _CancelWork

    # -- ending -----------------------------------------------------------------------------

    @property
    def is_ending(self) -> bool:
        """Whether no caller may enter any more."""
        return self._is_sealed or self._cancels is not None or self.closed.is_reached()

    @property
    def is_abandoned(self) -> bool:
        """Whether the caller's event loop was closed before it could end: then it never will."""
        if self.in_thread:  # it closes its loop itself, a moment before it has ended
            return False
        return self.loop is not None and self.loop.is_closed() and not self.closed.is_reached()

    def is_own_thread(self) -> bool:
        """Whether the calling thread is that of its event loop."""
        return self.loop_thread is not None and self.loop_thread.is_current()

    def seal(self) -> None:
        """Take no more callers; `end` follows."""
        self._is_sealed = True

    def end(self, *, cancel: bool = False) -> None:
        """Have the Runtime closed: after its work has ended, or after cancelling it."""
        with self._lock:
            if self._cancels is not None:
                return
            self._cancels = cancel
            if self._ends is None or self.loop_thread is None or self.loop is None:
                return  # `_live` has not come so far, and will find the decision
        if self.loop_thread.is_current():
            self._resolve(cancel)
        else:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                self.loop.call_soon_threadsafe(self._resolve, cancel)

    def _resolve(self, cancel: bool) -> None:
        if self._ends is not None and not self._ends.done():
            self._ends.set_result(cancel)

    def cancel(self) -> None:
        """Stop waiting for work: cancel it now. For a run on a caller's loop."""
        if self._task is not None:
            self._task.cancel()

    def _finish(self, error: BaseException | None) -> None:
        self.error = error
        self.predecessor = None
        self._on_closed(self)
        self.opened.reach()
        self.closed.reach()

    def raise_error(self) -> None:
        """Raise what closing raised. Being cancelled is no error of the run."""
        if self.error is not None and not isinstance(self.error, asyncio.CancelledError):
            raise self.error


def run_abandoning_zombies(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as asyncio.run() does, but do not wait for tasks that will not end.

    Their loop is closed, so that they never run again.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(main)
    except AttemptsStillAlive:
        zombies = asyncio.all_tasks(runner.get_loop())
        if zombies:
            _ABANDONED.append(zombies)
            for task in zombies:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            runner.get_loop().close()
        raise
    finally:
        if not runner.get_loop().is_closed():
            runner.close()

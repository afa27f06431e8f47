"""The Future of a task in a queue."""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Callable
from typing import Any

from interlock.errors import InterlockError, TaskFailed
from interlock.model.outcome import Outcome, State
from interlock.model.why import Explanation
from interlock.runtime.background import Background
from interlock.runtime.context import CURRENT
from interlock.runtime.handle import Handle

_LOG = logging.getLogger("interlock")

OnEnded = Callable[["TaskFuture"], None]


class TaskFuture(concurrent.futures.Future[Any]):
    """A `concurrent.futures.Future` that can also cancel what runs, and say what it waits for.

    `result()` raises what the agent raised; TimeoutError if its time was up; CancelledError if it
    was cancelled; TaskFailed if a task that it comes after did not succeed. Callbacks are called
    on the thread of the queue, and must be quick.
    """

    name: str
    """The id that the task was given, or got."""
    task_id: str
    """Its id in the run: another one, where an id is used again."""

    def __init__(self, background: Background, agent_type: str, ended: OnEnded) -> None:
        super().__init__()
        self.earlier: TaskFuture | str | None = None
        """The task that had the id before, until this one is taken in."""
        self.agent_type = agent_type
        self.handle: Handle[Any] | None = None
        """For the queue's thread: there as soon as the Runtime has the task."""
        self._background = background
        self._ended = ended

    # -- for whoever holds it ---------------------------------------------------------------

    def cancel(self) -> bool:
        """End the task, whether it waits or runs; False if it has ended otherwise.

        What runs is told to stop. Its files stay its own until it has.
        """
        if not self.done():
            door = self._background.runtime.loop_thread
            if door.call(self._cancel) and not door.is_current():
                concurrent.futures.wait([self])
        return self.cancelled()

    def _cancel(self) -> bool:
        return self.handle is not None and self.handle.cancel("cancelled through its Future")

    def running(self) -> bool:
        """Whether it runs now."""
        return not self.done() and self._background.runtime.loop_thread.call(self._where) in (
            State.RUNNING,
            State.NEEDS_YOU,
        )

    def _where(self) -> State | None:
        return None if self.handle is None else self.handle.state

    def why(self) -> Explanation | None:
        """Every reason why it is not running; None once it has ended."""
        return None if self.done() else self._background.runtime.loop_thread.call(self._why)

    def _why(self) -> Explanation | None:
        return None if self.handle is None else self.handle.why()

    def result(self, timeout: float | None = None) -> Any:
        """What the agent returned; raises what it raised. TimeoutError after `timeout` seconds."""
        self._lend_slot(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What `result()` would raise, or None. TimeoutError after `timeout` seconds."""
        self._lend_slot(timeout)
        return super().exception(timeout)

    def _lend_slot(self, timeout: float | None) -> None:
        """Wait as a task does: with its slot lent out, or one that waits for another hangs both."""
        if CURRENT.get(None) is not None and not self.done():
            door = self._background.runtime.loop_thread
            handle = door.call(lambda: self.handle)
            if handle is not None:
                handle.wait(timeout)

    # -- for the queue, on its thread -------------------------------------------------------

    def taken(self, taken: Handle[Any] | InterlockError) -> None:
        """The Runtime has the task; or will not have it."""
        self.earlier = None
        if isinstance(taken, Handle):
            self.handle = taken
            taken.when_settled(self._settled)
        else:
            self._settled(taken)

    def _settled(self, error: BaseException | None) -> None:
        self._ended(self)
        try:
            self._resolve(error)
        except BaseException:  # noqa: BLE001 - of a callback (SystemExit, for one); the loop is everybody's
            _LOG.exception("a callback of the Future of %s raised", self.name)
        self.handle = None  # with the task and all that it was called with

    def _resolve(self, error: BaseException | None) -> None:
        outcome = None if self.handle is None else self.handle.outcome
        if outcome is None:
            self.set_exception(error)
        elif outcome.status is State.SUCCEEDED:
            self.set_result(outcome.result)
        elif outcome.status is State.CANCELLED:
            super().cancel()
            self.set_running_or_notify_cancel()
        elif outcome.status is State.TIMED_OUT:
            self.set_exception(TimeoutError(f"task {self.name!r}: {_said(outcome)}"))
        else:
            # Without the exception itself (a run that was taken up again), its record has to do.
            self.set_exception(outcome.exception or TaskFailed(outcome))


def _said(outcome: Outcome[Any]) -> str:
    return outcome.reason if outcome.error is None else outcome.error.message

"""`TaskFuture`: the Future of a task in a queue."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

from interlock.errors import InterlockError
from interlock.model.outcome import State
from interlock.model.why import Explanation
from interlock.runtime.context import CURRENT
from interlock.runtime.handle import Handle
from interlock.runtime.log import LOGGER
from interlock.runtime.outcome_conversion import exception_of
from interlock.runtime.runtime import Runtime

OnEnded = Callable[["TaskFuture"], None]


class TaskFuture(concurrent.futures.Future[Any]):
    """A `concurrent.futures.Future` that can also cancel a running task and explain its waiting.

    `result()` raises the agent's exception; TimeoutError if the task timed out; CancelledError if
    it was cancelled; TaskFailed if a dependency did not succeed. Callbacks are called on the thread
    of the event loop, and must be quick.
    """

    name: str
    """The id of the task in the queue, given or generated."""
    task_id: str
    """Its id in the run, which differs where an id is reused."""

    def __init__(self, runtime: Runtime, agent_type: str, ended: OnEnded) -> None:
        super().__init__()
        self.earlier: TaskFuture | str | None = None
        """The task that had the id before, until this one has been accepted."""
        self.agent_type = agent_type
        self.handle: Handle[Any] | None = None
        """For the thread of the loop: set once the Runtime has accepted the task."""
        self._runtime = runtime
        self._ended = ended

    # -- for callers ------------------------------------------------------------------------

    def cancel(self) -> bool:
        """Cancel the task, whether it waits or runs; False if it has ended otherwise.

        A running task is told to stop. It holds its files until it has stopped.
        """
        if not self.done():
            thread = self._runtime.loop_thread
            if thread.call(self._cancel) and not thread.is_current():
                concurrent.futures.wait([self])
        return self.cancelled()

    def _cancel(self) -> bool:
        return self.handle is not None and self.handle.cancel("cancelled through its Future")

    def running(self) -> bool:
        """Whether the task runs now."""
        running = (State.RUNNING, State.NEEDS_YOU)
        return not self.done() and self._runtime.loop_thread.call(self._state_now) in running

    def _state_now(self) -> State | None:
        return None if self.handle is None else self.handle.state

    def why(self) -> Explanation | None:
        """Every reason why the task is not running; None once it has ended."""
        return None if self.done() else self._runtime.loop_thread.call(self._why)

    def _why(self) -> Explanation | None:
        return None if self.handle is None else self.handle.why()

    def result(self, timeout: float | None = None) -> Any:
        """Return the result or raise the exception. TimeoutError after `timeout` seconds."""
        self._lend_slot(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what `result()` would raise, or None. TimeoutError after `timeout` seconds."""
        self._lend_slot(timeout)
        return super().exception(timeout)

    def _lend_slot(self, timeout: float | None) -> None:
        """Inside a task, wait through the handle, which lends out the slot meanwhile."""
        if CURRENT.get(None) is not None and not self.done():
            handle = self._runtime.loop_thread.call(lambda: self.handle)
            if handle is not None:
                handle.wait(timeout)

    # -- for the queue, on the thread of the event loop -------------------------------------

    def accepted(self, answer: Handle[Any] | InterlockError) -> None:
        """Set the handle of a task that the Runtime has accepted, or the error if it refused."""
        self.earlier = None
        if isinstance(answer, Handle):
            self.handle = answer
            answer.when_settled(self._settled)
        else:
            self._settled(answer)

    def _settled(self, error: BaseException | None) -> None:
        self._ended(self)
        try:
            self._resolve(error)
        except BaseException:  # noqa: BLE001 - raised by a callback; it must not end the loop
            LOGGER.exception("a callback of the Future of %s raised", self.name)
        self.handle = None  # it refers to the task and its arguments

    def _resolve(self, error: BaseException | None) -> None:
        outcome = None if self.handle is None else self.handle.outcome
        if outcome is None:
            self.set_exception(error)
        elif outcome.status is State.SUCCEEDED:
            self.set_result(outcome.result)
        elif outcome.status is State.CANCELLED:
            super().cancel()
            self.set_running_or_notify_cancel()
        else:
            self.set_exception(exception_of(outcome, f"task {self.name!r}"))

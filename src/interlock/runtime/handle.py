"""A submitted task, as its submitter holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from interlock.errors import TaskFailed
from interlock.execution.call_spec import CallSpec
from interlock.model.claim import Claim
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.why import Explanation
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.waitable import Waitable

T = TypeVar("T")
Waiter = Callable[[BaseException | None], None]


class Running(NamedTuple):
    """An attempt that is alive: `stopping` if it was told to stop and has not stopped yet.

    `since` is in seconds since the run began.
    """

    task_id: str
    claims: tuple[Claim, ...]
    since: float
    stopping: bool


class HandleRun(Protocol):
    """What a handle asks of the run that its task belongs to."""

    @property
    def run_id(self) -> str: ...
    @property
    def loop_thread(self) -> LoopThread: ...

    def state_of(self, task_id: str) -> State:
        """The state of a task."""

    def cancel(self, task_id: str, reason: str) -> bool:
        """End a task; False if it has ended already."""

    def why(self, task_id: str) -> Explanation:
        """Every reason why a task is not running."""

    def ends(self, handles: Sequence[Handle[Any]]) -> Awaitable[None]:
        """Wait until these tasks have their outcomes; inside a task, with its slot lent out."""

    def no_outcome(self) -> BaseException | None:
        """Why unsettled tasks will not get an outcome in this process; None: they will."""

    def callback_failed(self, task_id: str, callback: Waiter, error: BaseException) -> None:
        """A function that was to be called at the end of a task raised."""


class Submission(NamedTuple):
    """What the handles of tasks that were submitted together have in common: one object for all."""

    run: HandleRun
    context: Context
    """The context variables of the code that submitted them."""
    parent: tuple[str, int] | None
    """The attempt whose children they are, if they are any: its task and token."""


class Handle(Generic[T]):
    """A submitted task. `await handle` gives its Outcome and never raises for its failure.

    In a thread, `handle.wait()` does the same. A task that waits for another one lends out its slot
    meanwhile.
    """

    __slots__ = ("_call_spec", "_submission", "_waiters", "outcome", "task")

    def __init__(
        self,
        submission: Submission,
        task: Task,
        spec: CallSpec | None,
        outcome: Outcome[T] | None = None,
    ) -> None:
        self._submission = submission
        self._call_spec = spec
        # No list before there is a waiter: a run may have a million handles.
        self._waiters: list[Waiter] | None = None
        self.task = task
        """The task as it was taken in, with its claims as they are compared."""
        self.outcome: Outcome[T] | None = outcome
        """How it ended; None before."""

    @property
    def _run(self) -> HandleRun:
        return self._submission.run

    @property
    def parent(self) -> tuple[str, int] | None:
        """The attempt whose child it is, if it is one: its task and token."""
        return self._submission.parent

    @property
    def has_agent(self) -> bool:
        """Whether its agent is known; not that of a task that ended in an earlier process."""
        return self._call_spec is not None

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def state(self) -> State:
        """The state it is in now."""
        if self.outcome is not None:
            return self.outcome.status
        return self._run.loop_thread.call(self._run.state_of, self.task.id)

    def done(self) -> bool:
        """Whether it has its outcome."""
        return self.outcome is not None

    def __await__(self) -> Generator[Any, None, Outcome[T]]:
        if self.outcome is None:
            yield from self._run.ends((self,)).__await__()
        assert self.outcome is not None
        return self.outcome

    def wait(self, timeout: float | None = None) -> Outcome[T]:
        """Block this thread until the task has ended; TimeoutError after `timeout` seconds."""
        if self.outcome is None:
            self._run.loop_thread.wait(lambda: self._run.ends((self,)), timeout)
        assert self.outcome is not None
        return self.outcome

    def result(self) -> Waitable[T]:
        """The value: `await handle.result()`, in a thread `handle.result().wait()`.

        Raises TaskFailed, from the cause, if the task did not succeed.
        """
        return Waitable(self._run.loop_thread, self._value, "handle.result()")

    async def _value(self) -> T:
        outcome = await self
        if outcome.status is not State.SUCCEEDED:
            raise TaskFailed(outcome) from outcome.exception
        return cast(T, outcome.result)

    def cancel(self, reason: str = "cancelled") -> bool:
        """End the task, with its children; False if it has ended already."""
        return self._run.loop_thread.call(self._run.cancel, self.task.id, reason)

    def why(self) -> Explanation:
        """Every reason why it is not running."""
        return self._run.loop_thread.call(self._run.why, self.task.id)

    def __repr__(self) -> str:
        return f"<Handle {self.task.id!r}: {self.state}>"

    # -- for the run ------------------------------------------------------------------------

    async def settled(self) -> None:
        """Wait for the outcome, with no slot to lend out. Raises if there will be none."""
        if self.outcome is None:
            error = self._run.no_outcome()
            if error is not None:
                raise error
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_settled(partial(_resolve, waiter))
            await waiter

    def when_settled(self, callback: Waiter) -> None:
        """Have a function called on the loop once the outcome is there, with None.

        It is called with an error if there will be no outcome, and at once if that is known
        already. It must be quick; what it raises is logged.
        """
        error = None if self.outcome is not None else self._run.no_outcome()
        if self.outcome is not None or error is not None:
            self._tell((callback,), error)
        elif self._waiters is None:
            self._waiters = [callback]
        else:
            self._waiters.append(callback)

    def settle(self, outcome: Outcome[T]) -> None:
        """The one outcome is there: tell those that wait for it."""
        self.outcome = outcome
        waiters, self._waiters = self._waiters, None
        # Taken out before they are called: a callback may add another, which is called at once.
        if waiters is not None:
            self._tell(waiters, None)

    def give_up(self, error: BaseException) -> None:
        """There will be no outcome: tell those that wait for it."""
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            self._tell(waiters, error)

    def _tell(self, waiters: Iterable[Waiter], error: BaseException | None) -> None:
        for waiter in waiters:
            try:
                waiter(error)
            except BaseException as trouble:  # noqa: BLE001 - also a sys.exit(): it is not ours
                # One callback must hurt neither the other waiters nor the run.
                self._run.callback_failed(self.task.id, waiter, trouble)


def _resolve(waiter: asyncio.Future[None], error: BaseException | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)

"""A submitted task, as its submitter holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from interlock.errors import InterlockError, ShuttingDown, TaskFailed
from interlock.execution.call_spec import CallSpec
from interlock.model.claim import Claim
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.why import Explanation
from interlock.runtime.waitable import Waitable

if TYPE_CHECKING:
    from interlock.runtime.shell import Shell

T = TypeVar("T")
Waiter = Callable[[BaseException | None], None]


class Running(NamedTuple):
    """An attempt that is alive: `stopping` if it was told to stop and is not gone.

    `since` is in seconds since the run began.
    """

    task_id: str
    claims: tuple[Claim, ...]
    since: float
    stopping: bool


class Submission(NamedTuple):
    """What the handles of tasks that were submitted together have in common: one object for all."""

    shell: Shell
    context: Context
    """The context variables of whoever submitted them."""
    parent: tuple[str, int] | None
    """The attempt whose children they are, if they are any: its task and token."""


class Handle(Generic[T]):
    """A submitted task. `await handle` gives its Outcome and never raises for its failure.

    In a thread, `handle.wait()` does the same. A task that waits for another one lends out its slot
    meanwhile.
    """

    __slots__ = ("_call_spec", "_submission", "_waiters", "outcome", "task")

    def __init__(self, submission: Submission, task: Task, spec: CallSpec | None) -> None:
        self._submission = submission
        self._call_spec = spec
        self._waiters: list[Waiter] | None = None
        self.task = task
        """The task as it was taken in, with its claims as they are compared."""
        self.outcome: Outcome[T] | None = None
        """How it ended; None before."""

    @property
    def _shell(self) -> Shell:
        return self._submission.shell

    @property
    def parent(self) -> tuple[str, int] | None:
        """The attempt whose child it is, if it is one: its task and token."""
        return self._submission.parent

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def state(self) -> State:
        """Where it is in its life now."""
        if self.outcome is not None:
            return self.outcome.status
        return self._shell.loop_thread.call(self._shell.kernel.state, self.task.id)

    def done(self) -> bool:
        """Whether it has its outcome."""
        return self.outcome is not None

    def __await__(self) -> Generator[Any, None, Outcome[T]]:
        if self.outcome is None:
            yield from self._shell.requests.ends((self,)).__await__()
        assert self.outcome is not None
        return self.outcome

    def wait(self, timeout: float | None = None) -> Outcome[T]:
        """Block this thread until the task has ended; TimeoutError after `timeout` seconds."""
        if self.outcome is None:
            self._shell.loop_thread.wait(lambda: self._shell.requests.ends((self,)), timeout)
        assert self.outcome is not None
        return self.outcome

    def result(self) -> Waitable[T]:
        """The value: `await handle.result()`, in a thread `handle.result().wait()`.

        Raises TaskFailed, from the cause, if the task did not succeed.
        """
        return Waitable(self._shell.loop_thread, self._value, "handle.result()")

    async def _value(self) -> T:
        outcome = await self
        if outcome.status is not State.SUCCEEDED:
            raise TaskFailed(outcome) from outcome.exception
        return cast(T, outcome.result)

    def cancel(self, reason: str = "cancelled") -> bool:
        """End the task, with its children; False if it has ended already."""
        return self._shell.loop_thread.call(self._shell.cancel, self.task.id, reason)

    def why(self) -> Explanation:
        """Every reason why it is not running."""
        return self._shell.loop_thread.call(self._shell.why, self.task.id)

    def __repr__(self) -> str:
        return f"<Handle {self.task.id!r}: {self.state}>"

    # -- for the shell ----------------------------------------------------------------------

    async def settled(self) -> None:
        """Wait for the outcome, whoever waits."""
        if self.outcome is None:
            if self._shell.broken is not None:
                raise InterlockError("the run was ended by a bug") from self._shell.broken
            if self._shell.suspended:
                raise ShuttingDown(f"run {self._shell.run_id} was interrupted")
            waiter: asyncio.Future[None] = self._shell.loop.create_future()
            self.when_settled(partial(_resolve, waiter))
            await waiter

    def when_settled(self, callback: Waiter) -> None:
        """Have this called on the loop once the outcome is there, with None.

        With an error, if there will be no outcome. At once, if that is known already. It must be
        quick; what it raises is logged.
        """
        if self.outcome is not None:
            self._tell((callback,), None)
        elif self._shell.broken is not None:
            self._tell((callback,), self._shell.broken)
        elif self._waiters is None:
            self._waiters = [callback]
        else:
            self._waiters.append(callback)

    def settle(self, outcome: Outcome[T]) -> None:
        """The one outcome is there."""
        self.outcome = outcome
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            self._tell(waiters, None)

    def give_up(self, error: BaseException) -> None:
        """There will be no outcome."""
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            self._tell(waiters, error)

    def _tell(self, waiters: Iterable[Waiter], error: BaseException | None) -> None:
        for waiter in waiters:
            try:
                waiter(error)
            except BaseException as trouble:  # noqa: BLE001 - also a sys.exit(): it is not ours
                # Whoever waits for one task must hurt neither the others who wait nor the run.
                self._shell.log.callback_failed(self.task.id, waiter, trouble)


def _resolve(waiter: asyncio.Future[None], error: BaseException | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)

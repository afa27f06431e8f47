"""A queue for code that is not async: submit and forget; what conflicts never runs together."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from interlock.errors import (
    AttemptOver,
    FatalError,
    InvalidOption,
    NotRunning,
    ShuttingDown,
    UnknownTask,
    WouldDeadlock,
)
from interlock.model.duration import Duration
from interlock.model.load import Gate
from interlock.patterns.queue.agent_task import AgentTask, as_task
from interlock.patterns.queue.exit import finish_with_the_program
from interlock.patterns.queue.file_ownership import FileOwnership
from interlock.patterns.queue.load_text import LoadText
from interlock.patterns.queue.queue_status import QueueSnapshot, QueueStatus
from interlock.patterns.queue.task_future import TaskFuture
from interlock.patterns.queue.task_ids import TaskIds
from interlock.runtime.background import Background
from interlock.runtime.context import current

KEPT = 1_000
"""A queue may live for years: what older tasks have brought is in their Futures alone."""


class TaskQueue:
    """Runs the tasks of agents in the background; usable from every thread.

        with TaskQueue(max_parallel=4) as queue:
            future = queue.submit_task(AgentTask("architect", "write the spec", ["docs/"], work))
            print(future.result())

    A task starts as soon as a slot is free, nobody of its agent type runs, and nobody has any of
    its files. Until then it takes up no thread. Higher priority goes first, first come first served
    among equals. Leaving the block finishes what was submitted, leaving it by an error cancels it.

    Above `max_cpu_percent` or `max_memory_percent` of the machine nothing starts, unless nothing
    runs. `ownership` says what each agent type may modify. `workspace`, `journal`, `resume` and
    `grace` are those of the Runtime, which is there as `runtime`, to look at and to steer.
    (`background` is one that is there already, for tests.)
    """

    def __init__(
        self,
        max_parallel: int = 4,
        *,
        max_cpu_percent: float | None = None,
        max_memory_percent: float | None = None,
        ownership: FileOwnership | None = None,
        workspace: str | os.PathLike[str] = ".",
        journal: str | os.PathLike[str] | None = None,
        resume: bool | str | None = None,
        grace: Duration = 30.0,
        background: Background | None = None,
    ) -> None:
        gate = None
        if max_cpu_percent is not None or max_memory_percent is not None:
            gate = Gate(max_cpu_percent, max_memory_percent)
        self._ownership = ownership
        self._is_durable = journal is not None
        self._lock = threading.Lock()
        self._closed = False
        self._names = TaskIds()
        self._load = LoadText()
        self._unfinished: dict[str, TaskFuture] = {}
        if background is None:
            background = Background(
                max_parallel,
                workspace,
                journal,
                resume,
                order="first_come",
                gate=gate,
                grace=grace,
                max_outcomes=KEPT,
            )
            finish_with_the_program(self)
        self._background = background
        self.runtime = background.runtime

    # -- submitting -------------------------------------------------------------------------

    def submit_task(self, task: AgentTask) -> TaskFuture:
        """Queue a task. What is wrong with it raises here, and nothing is queued."""
        if self._is_durable:
            return self.submit_tasks([task])[0]
        future = self._future(task)
        with self._lock:
            self._refuse_when_closed()
            after = self._names.name(task, future)
        # Not waiting for the queue's thread: all that can be wrong is seen from here.
        try:
            made = as_task(task, future.task_id, after, self._ownership)
            prepared = self.runtime.prepare(made)
            with self._lock:
                self._refuse_when_closed()
                self._unfinished[future.task_id] = future
                self.runtime.post(prepared, future.taken)
        except BaseException:
            self._forget([future])
            raise
        return future

    def submit_tasks(self, tasks: Iterable[AgentTask]) -> list[TaskFuture]:
        """Queue tasks together, all or, with an error, none. They may come after each other."""
        listed = list(tasks)
        futures = [self._future(task) for task in listed]
        with self._lock:
            self._refuse_when_closed()
            after = self._names.name_all(listed, futures)

        def take_in() -> None:
            handles = self.runtime.submit_all(made)
            self._unfinished.update((each.task_id, each) for each in futures)
            for future, handle in zip(futures, handles, strict=True):
                future.taken(handle)

        door = self.runtime.loop_thread
        try:
            made = [
                as_task(task, future.task_id, before, self._ownership)
                for task, future, before in zip(listed, futures, after, strict=True)
            ]
            door.call(take_in)
        except BaseException:
            self._forget(futures)
            raise
        if self._is_durable and not door.is_current():
            self._background.wait(self.runtime.flush)
        return futures

    def _future(self, task: AgentTask) -> TaskFuture:
        if not isinstance(task, AgentTask):
            raise InvalidOption(f"{task!r} is no AgentTask; write AgentTask('architect', ...)")
        return TaskFuture(self._background, task.agent_type, self._ended)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise ShuttingDown("this queue was shut down; it takes no more tasks")

    def _forget(self, futures: Iterable[TaskFuture]) -> None:
        with self._lock:
            self._names.forget(futures)
        for future in futures:
            self._unfinished.pop(future.task_id, None)

    def _ended(self, future: TaskFuture) -> None:
        self._unfinished.pop(future.task_id, None)
        self._names.ended(future)

    # -- looking ----------------------------------------------------------------------------

    def get_status(self) -> QueueStatus:
        """What runs and what waits at this moment, and what for."""
        snapshot = QueueSnapshot()
        with suppress(NotRunning):  # then there is nothing to see
            self.runtime.loop_thread.call(self._look, snapshot)
            snapshot.explain(self.runtime)
        return snapshot.status(self._closed, *self._load.read())

    def _look(self, snapshot: QueueSnapshot) -> None:
        snapshot.take(self.runtime, list(self._unfinished.values()))

    # -- the end ----------------------------------------------------------------------------

    def shutdown(self, wait: bool = True) -> None:
        """Take no more tasks. Finish those that were submitted, and wait for them.

        Without `wait`, cancel what has not started and return; what runs goes on to its end.
        AttemptsStillAlive names tasks that were cancelled and would not stop.
        """
        if wait and not self._background.is_over and self._is_inside():
            raise WouldDeadlock("the queue would wait here for itself; use wait=False")
        with self._lock:
            self._closed = True
        with suppress(NotRunning):
            if wait:
                self.runtime.loop_thread.call(bool)  # what was posted comes before the end
            else:
                queued = self.runtime.loop_thread.call(self._cancel_queued)
                if not self.runtime.loop_thread.is_current():
                    concurrent.futures.wait(queued)
        self._close(wait=wait)

    def _cancel_queued(self) -> list[TaskFuture]:
        queued = [each for each in list(self._unfinished.values()) if not each.running()]
        for future in queued:
            if future.handle is not None:
                future.handle.cancel("the queue was shut down")
        return queued

    def _close(self, *, wait: bool = True, cancel: bool = False) -> None:
        # An agent that ran out of memory is told by its Future.
        with suppress(FatalError):
            self._background.close(cancel=cancel, wait=wait)

    def _is_inside(self) -> bool:
        """Whether this is one of its tasks, or its own thread."""
        if self.runtime.loop_thread.is_current():
            return True
        try:
            task = current().task
            return self.runtime.handle(task.id).task is task
        except (AttemptOver, UnknownTask, NotRunning):
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.shutdown()
        else:
            with self._lock:
                self._closed = True
            self._close(cancel=True)

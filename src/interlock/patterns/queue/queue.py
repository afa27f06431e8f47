"""`TaskQueue`: a queue for blocking code; tasks that conflict never run together."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Self

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
from interlock.patterns.queue.file_ownership import FileOwnership
from interlock.patterns.queue.queue_status import QueueSnapshot, QueueStatus
from interlock.patterns.queue.task_future import TaskFuture
from interlock.patterns.queue.task_ids import TaskIds
from interlock.runtime.context import current
from interlock.runtime.hosting.finish_at_exit import finish_at_exit
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.load_text import LoadText
from interlock.runtime.runtime import Runtime

MAX_OUTCOMES = 1_000
"""A queue may run for years: older outcomes are only in their Futures."""


class TaskQueue:
    """Runs the tasks of agents in the background; usable from any thread.

        with TaskQueue(max_parallel=4) as queue:
            future = queue.submit_task(AgentTask("architect", "write the spec", ["docs/"], work))
            print(future.result())

    A task starts as soon as a slot is free, no other task of its agent type runs, and its files are
    free. Until then it occupies no thread. A higher priority goes first; equals start in order of
    submission. Leaving the block finishes all submitted tasks; leaving it by an error cancels them.

    While the load of the machine is above `max_cpu_percent` or `max_memory_percent`, nothing
    starts, unless nothing runs. `ownership` says what each agent type may modify. `workspace`,
    `journal`, `resume` and `grace` are those of Runtime; `runtime` is the Runtime itself, to
    inspect and to control. (Tests pass one that is open already.)
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
        runtime: Runtime | None = None,
    ) -> None:
        gate = None
        if max_cpu_percent is not None or max_memory_percent is not None:
            gate = Gate(max_cpu_percent, max_memory_percent)
        self._ownership = ownership
        self._is_durable = journal is not None
        self._lock = threading.Lock()
        self._closed = False
        self._ids = TaskIds()
        self._load = LoadText()
        self._unfinished: dict[str, TaskFuture] = {}
        self._host = RuntimeHost(
            lambda: Runtime(
                max_parallel,
                workspace,
                journal,
                resume,
                order="first_come",
                gate=gate,
                grace=grace,
                max_outcomes=MAX_OUTCOMES,
            ),
            what="this queue",
        )
        if runtime is None:
            runtime = self._host.enter_from_thread()
            finish_at_exit(self)
        self.runtime = runtime

    # -- submitting -------------------------------------------------------------------------

    def submit_task(self, task: AgentTask) -> TaskFuture:
        """Queue a task. An invalid task raises here, and nothing is queued."""
        if self._is_durable:
            return self.submit_tasks([task])[0]
        future = self._future(task)
        with self._lock:
            self._check_open()
            after = self._ids.assign(task, future)
        # Do not wait for the event loop: everything can be validated from here.
        try:
            prepared = self.runtime.prepare(as_task(task, future.task_id, after, self._ownership))
            with self._lock:
                self._check_open()
                self._unfinished[future.task_id] = future
                self.runtime.post(prepared, future.accepted)
        except BaseException:
            self._forget([future])
            raise
        return future

    def submit_tasks(self, tasks: Iterable[AgentTask]) -> list[TaskFuture]:
        """Queue tasks together, all or, on an error, none. They may depend on each other."""
        listed = list(tasks)
        futures = [self._future(task) for task in listed]
        with self._lock:
            self._check_open()
            after = self._ids.assign_all(listed, futures)

        def submit() -> None:
            handles = self.runtime.submit_all(made)
            self._unfinished.update((each.task_id, each) for each in futures)
            for future, handle in zip(futures, handles, strict=True):
                future.accepted(handle)

        thread = self.runtime.loop_thread
        try:
            made = [
                as_task(task, future.task_id, before, self._ownership)
                for task, future, before in zip(listed, futures, after, strict=True)
            ]
            thread.call(submit)
        except BaseException:
            self._forget(futures)
            raise
        if self._is_durable and not thread.is_current():
            thread.wait(self.runtime.flush, None)
        return futures

    def _future(self, task: AgentTask) -> TaskFuture:
        if not isinstance(task, AgentTask):
            raise InvalidOption(f"{task!r} is not an AgentTask; write AgentTask('architect', ...)")
        return TaskFuture(self.runtime, task.agent_type, self._ended)

    def _check_open(self) -> None:
        if self._closed:
            raise ShuttingDown("this queue has been shut down; it accepts no more tasks")

    def _forget(self, futures: Iterable[TaskFuture]) -> None:
        with self._lock:
            self._ids.forget(futures)
        for future in futures:
            self._unfinished.pop(future.task_id, None)

    def _ended(self, future: TaskFuture) -> None:
        self._unfinished.pop(future.task_id, None)
        self._ids.ended(future)

    # -- looking ----------------------------------------------------------------------------

    def get_status(self) -> QueueStatus:
        """Return what runs and what waits at this moment, and what it waits for."""
        snapshot = QueueSnapshot()
        with suppress(NotRunning):  # then the status is empty
            self.runtime.loop_thread.call(self._fill, snapshot)
            snapshot.explain(self.runtime)
        return snapshot.status(self._closed, *self._load.read())

    def _fill(self, snapshot: QueueSnapshot) -> None:
        snapshot.take(self.runtime, list(self._unfinished.values()))

    # -- the end ----------------------------------------------------------------------------

    def shutdown(self, wait: bool = True) -> None:
        """Refuse new tasks, finish those that were submitted, and wait for them.

        Without `wait`, cancel queued tasks and return at once; running tasks continue.
        AttemptsStillAlive names cancelled tasks that did not stop.
        """
        if wait and not self._host.is_closed and self._is_inside():
            raise WouldDeadlock("a task of the queue would wait for itself here; use wait=False")
        with self._lock:
            self._closed = True
        with suppress(NotRunning):
            if wait:
                self.runtime.loop_thread.call(bool)  # let posted tasks arrive before the end
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
        with suppress(FatalError):  # the Future of the task has it
            self._host.close_from_thread(cancel=cancel, wait=wait)

    def _is_inside(self) -> bool:
        """Whether this code runs in a task of the queue, or on the thread of its event loop."""
        if self.runtime.loop_thread.is_current():
            return True
        try:
            task = current().task
            return self.runtime.handle(task.id).task is task
        except (AttemptOver, UnknownTask, NotRunning):
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None:
            self.shutdown()
        else:
            with self._lock:
                self._closed = True
            self._close(cancel=True)

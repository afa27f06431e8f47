"""Handing several tasks to configured agents at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from interlock.patterns.queue.agent_task import from_entry
from interlock.patterns.queue.queue import TaskQueue
from interlock.patterns.queue.task_future import TaskFuture


class _DefaultQueue:
    """The queue of those who brought none: one for the process, or they would not see each other.

    It finishes its work when the program ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: TaskQueue | None = None

    def queue(self) -> TaskQueue:
        with self._lock:
            if self._queue is None:
                self._queue = TaskQueue()
            return self._queue


_DEFAULT = _DefaultQueue()


def delegate_tasks_parallel(
    tasks: Iterable[Mapping[str, Any]], *, queue: TaskQueue | None = None
) -> list[TaskFuture]:
    """Queue several tasks, all or, with an error, none; a Future for each, in their order.

        delegate_tasks_parallel([
            {"agent_type": "architect", "description": "write the spec", "files": ["docs/"]},
            {"agent_type": "developer", "description": "implement it", "files": ["src/"]},
        ])

    Agents are made by the AgentRegistry, unless there is an `execute_fn`. Other keys are the
    options of AgentTask. Without a `queue`, one that all callers in this process share is used.
    """
    listed = [from_entry(entry, number) for number, entry in enumerate(tasks, 1)]
    return (queue or _DEFAULT.queue()).submit_tasks(listed)

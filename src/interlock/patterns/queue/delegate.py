"""`delegate_tasks_parallel`: hand several tasks to configured agents at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from interlock.patterns.queue.agent_task import from_entry
from interlock.patterns.queue.queue import TaskQueue
from interlock.patterns.queue.task_future import TaskFuture


def delegate_tasks_parallel(
    tasks: Iterable[Mapping[str, Any]], *, queue: TaskQueue | None = None
) -> list[TaskFuture]:
    """Queue several tasks, all or, on an error, none; return a Future for each, in input order.

        delegate_tasks_parallel([
            {"agent_type": "architect", "description": "write the spec", "files": ["docs/"]},
            {"agent_type": "developer", "description": "implement it", "files": ["src/"]},
        ])

    An entry without `files` is read-only. The AgentRegistry makes the agents, unless an entry has
    an `execute_fn`. Other keys are the options of AgentTask. Without a `queue`, all callers in this
    process share one, which finishes its work when the program ends.
    """
    listed = [from_entry(entry, number) for number, entry in enumerate(tasks, 1)]
    if queue is None:
        with _lock:
            queue = _default_queue()
    return queue.submit_tasks(listed)


_lock = threading.Lock()


@cache
def _default_queue() -> TaskQueue:
    # One for the process: tasks in two queues would not see each other's files.
    return TaskQueue()

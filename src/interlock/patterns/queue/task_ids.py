"""The ids of the tasks of a queue, which may be reused."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from interlock.errors import DuplicateId, InvalidOption, UnknownDependency
from interlock.patterns.queue.agent_task import AgentTask, Dependency
from interlock.patterns.queue.task_future import TaskFuture


class TaskIds:
    """Maps ids to tasks. An id may be reused once its task has ended; it then means the new task.

    The Runtime uses each id once, so a second `spec` is `spec~2` there. Generated ids
    (`architect#1`) are the same in every run of a program that submits in the same order.

    Counted here and not by `Runtime.fresh_id`, because `submit_task` must not wait for the event
    loop. Not thread-safe: the queue calls it under its lock.
    """

    def __init__(self) -> None:
        self._last: dict[str, TaskFuture | str] = {}
        """The newest Future of an id; once it has ended, only its id in the Runtime."""
        self._generated: dict[str, int] = {}
        self._used: dict[str, int] = {}

    def assign(self, task: AgentTask, future: TaskFuture) -> tuple[str, ...]:
        """Give a Future its ids; return the ids, in the Runtime, of its dependencies."""
        after = self._dependencies(task) if task.after != () else ()
        self._assign(task, future)
        return after

    def assign_all(
        self, tasks: Sequence[AgentTask], futures: Sequence[TaskFuture]
    ) -> list[tuple[str, ...]]:
        """The same for several tasks, which may depend on each other; on an error, for none."""
        assigned: list[TaskFuture] = []
        try:
            for task, future in zip(tasks, futures, strict=True):
                self._assign(task, future)
                assigned.append(future)
            return [self._dependencies(task) for task in tasks]
        except BaseException:
            self.forget(assigned)
            raise

    def _assign(self, task: AgentTask, future: TaskFuture) -> None:
        name = task.id
        if name is None:
            count = self._generated[task.agent_type] = self._generated.get(task.agent_type, 0) + 1
            name = f"{task.agent_type}#{count}"
        future.earlier = self._last.get(name)
        if isinstance(future.earlier, TaskFuture) and not future.earlier.done():
            raise DuplicateId(f"there is an unfinished task with the id {name!r}")
        self._used[name] = used = self._used.get(name, 0) + 1
        future.name = name
        future.task_id = name if used == 1 else f"{name}~{used}"
        self._last[name] = future

    def ended(self, future: TaskFuture) -> None:
        """Drop the Future of a task that has ended: a queue may run for years."""
        if self._last.get(future.name) is future:
            self._last[future.name] = future.task_id

    def forget(self, futures: Iterable[TaskFuture]) -> None:
        """Undo `assign` for tasks that were not accepted: their ids mean what they meant before."""
        for future in futures:
            if self._last.get(future.name) is future:
                if future.earlier is None:
                    del self._last[future.name]
                else:
                    self._last[future.name] = future.earlier

    def _dependencies(self, task: AgentTask) -> tuple[str, ...]:
        """Return the ids, in the Runtime, of the tasks that a task depends on."""
        after = task.after
        if isinstance(after, (str, concurrent.futures.Future)) or not isinstance(after, Iterable):
            return (self._id_of(after, task),)
        return tuple(self._id_of(each, task) for each in after)

    def _id_of(self, before: Dependency, task: AgentTask) -> str:
        if not isinstance(before, str):
            task_id = getattr(before, "task_id", None)
            if not isinstance(task_id, str):
                raise InvalidOption(f"after has {before!r}; it takes ids and Futures of this queue")
            return task_id
        found = self._last.get(before)
        if found is None:
            close = get_close_matches(before, self._last, n=1)
            raise UnknownDependency(
                f"{task.agent_type} ({task.task_description!r}) depends on {before!r}, but there "
                "is no such task" + (f"; did you mean {close[0]!r}?" if close else "")
            )
        return found if isinstance(found, str) else found.task_id

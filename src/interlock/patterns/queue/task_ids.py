"""The ids of the tasks of a queue."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from interlock.errors import DuplicateId, InvalidOption, UnknownDependency
from interlock.patterns.queue.agent_task import AgentTask, Dependency
from interlock.patterns.queue.task_future import TaskFuture


class TaskIds:
    """Which task an id means. An id may be used again when its task has ended: it means the last.

    In the Runtime no id is used twice, so later ones are called `spec~2` there. Ids that are made
    (`architect#1`) are the same in every run of a program that submits in the same order.
    """

    def __init__(self) -> None:
        self._last: dict[str, TaskFuture | str] = {}
        """The last Future of an id; of one that has ended only its id in the Runtime."""
        self._made: dict[str, int] = {}
        self._used: dict[str, int] = {}

    def name(self, task: AgentTask, future: TaskFuture) -> tuple[str, ...]:
        """Give a Future the id of its task; the ids of those that it comes after."""
        after = self._ids_of(task) if task.after != () else ()
        self._name(task, future)
        return after

    def name_all(
        self, tasks: Sequence[AgentTask], futures: Sequence[TaskFuture]
    ) -> list[tuple[str, ...]]:
        """The same for several, which may come after each other; with an error, for none."""
        named: list[TaskFuture] = []
        try:
            for task, future in zip(tasks, futures, strict=True):
                self._name(task, future)
                named.append(future)
            return [self._ids_of(task) for task in tasks]
        except BaseException:
            self.forget(named)
            raise

    def _name(self, task: AgentTask, future: TaskFuture) -> None:
        name = task.id
        if name is None:
            count = self._made[task.agent_type] = self._made.get(task.agent_type, 0) + 1
            name = f"{task.agent_type}#{count}"
        future.earlier = self._last.get(name)
        if isinstance(future.earlier, TaskFuture) and not future.earlier.done():
            raise DuplicateId(f"there is an unfinished task with the id {name!r}")
        self._used[name] = used = self._used.get(name, 0) + 1
        future.name = name
        future.task_id = name if used == 1 else f"{name}~{used}"
        self._last[name] = future

    def ended(self, future: TaskFuture) -> None:
        """Keep no Future that has ended: a queue may live for years."""
        if self._last.get(future.name) is future:
            self._last[future.name] = future.task_id

    def forget(self, futures: Iterable[TaskFuture]) -> None:
        """They were not taken in: their ids mean what they meant before."""
        for future in futures:
            if self._last.get(future.name) is future:
                if future.earlier is None:
                    del self._last[future.name]
                else:
                    self._last[future.name] = future.earlier

    def _ids_of(self, task: AgentTask) -> tuple[str, ...]:
        """The ids, in the Runtime, of the tasks that one comes after."""
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
                f"{task.agent_type} ({task.task_description!r}) comes after {before!r}, but there "
                "is no such task" + (f"; did you mean {close[0]!r}?" if close else "")
            )
        return found if isinstance(found, str) else found.task_id

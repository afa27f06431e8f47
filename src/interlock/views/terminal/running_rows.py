"""Rows of running attempts: each keeps its row for as long as it runs, so that nothing jumps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.outcome import State


def is_running(task: TaskFacts) -> bool:
    """Whether an attempt of the task is running, or has not exited yet."""
    return task.state is State.RUNNING or task.stopping


class RunningRows:
    """Which task has which row. A new attempt takes the first free row."""

    def __init__(self) -> None:
        self._ids: list[str | None] = []

    def place(self, tasks: Iterable[TaskFacts]) -> Sequence[TaskFacts | None]:
        """The running tasks, each in its row; None is a free row."""
        running = {task.id: task for task in tasks if is_running(task)}
        self._ids = [each if each in running else None for each in self._ids]
        placed = set(self._ids)
        new = [task for task in running.values() if task.id not in placed]
        free = [number for number, each in enumerate(self._ids) if each is None]
        for task in sorted(new, key=lambda task: task.started_at or 0.0):
            if free:
                self._ids[free.pop(0)] = task.id
            else:
                self._ids.append(task.id)
        while self._ids and self._ids[-1] is None:
            self._ids.pop()
        return [None if each is None else running[each] for each in self._ids]

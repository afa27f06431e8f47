"""The status of a queue, as data for dashboards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from interlock.model.claim import Claim, Mode
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.patterns.queue.task_future import TaskFuture
from interlock.runtime.runtime import Runtime

_BATCH = 50
"""Tasks explained in one turn of the loop, so that the queue can work in between."""


class TaskStatus(TypedDict):
    """An unfinished task, or one that was told to stop and still runs (`stopping`)."""

    id: str
    agent_type: str
    description: str
    files: list[str]
    state: str
    waits_for: list[str]


class QueueStatus(TypedDict):
    """A queue at one moment."""

    running_agents: list[str]
    running_files: list[str]
    queued_tasks: int
    tasks: list[TaskStatus]
    shutting_down: bool
    cpu: str | None
    memory: str


class QueueSnapshot:
    """All tasks of a queue at one moment; taken on the thread of the event loop."""

    def __init__(self) -> None:
        self._agents: list[str] = []
        self._files: list[str] = []
        self._tasks: list[TaskStatus] = []
        self._waiting: list[tuple[TaskStatus, TaskFuture]] = []

    def take(self, runtime: Runtime, unfinished: Iterable[TaskFuture]) -> None:
        """Collect what runs and what waits."""
        for each in runtime.running():
            self._files += _files(each.claims)
            task = runtime.handle(each.task_id).task
            agent_type = task.labels.get("agent_type")
            if agent_type is None:
                continue  # a child task, which is part of its parent
            self._agents.append(agent_type)
            if each.stopping:
                self._tasks.append(_status(each.task_id, agent_type, task, "stopping"))
        for future in unfinished:
            self._add(future)

    def _add(self, future: TaskFuture) -> None:
        handle = future.handle
        if handle is None or handle.state.is_end:
            return
        status = _status(future.name, future.agent_type, handle.task, handle.state)
        self._tasks.append(status)
        if handle.state not in (State.RUNNING, State.NEEDS_YOU):
            self._waiting.append((status, future))

    def explain(self, runtime: Runtime) -> None:
        """Fill in what each waiting task waits for."""
        for start in range(0, len(self._waiting), _BATCH):
            runtime.loop_thread.call(_explain, self._waiting[start : start + _BATCH])

    def status(self, shutting_down: bool, cpu: str | None, memory: str) -> QueueStatus:
        """Return the snapshot as data."""
        return QueueStatus(
            running_agents=self._agents,
            running_files=self._files,
            queued_tasks=len(self._waiting),
            tasks=self._tasks,
            shutting_down=shutting_down,
            cpu=cpu,
            memory=memory,
        )


def _explain(waiting: list[tuple[TaskStatus, TaskFuture]]) -> None:
    for status, future in waiting:
        if future.handle is not None and not future.handle.done():
            found = future.handle.why()
            status["waits_for"] = [reason.describe(found.at) for reason in found.reasons]


def _status(name: str, agent_type: str, task: Task, state: str) -> TaskStatus:
    return TaskStatus(
        id=name,
        agent_type=agent_type,
        description=str(task.prompt or ""),
        files=_files(task.claims),
        state=str(state),
        waits_for=[],
    )


def _files(claims: Iterable[Claim]) -> list[str]:
    """Return the patterns that are claimed for writing."""
    return [claim.resource for claim in claims if claim.mode is Mode.WRITE]

"""Running tasks again that did not succeed, as follow-ups: the first outcome stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlock.errors import InvalidOption
from interlock.model.labels import RETRY_OF_LABEL
from interlock.model.outcome import State
from interlock.model.task import Task
from interlock.model.template import Template
from interlock.runtime.data import handles_in
from interlock.runtime.handle import Handle
from interlock.runtime.task_table import TaskTable


def follow_ups(tasks: TaskTable, task_id: str) -> dict[str, Task]:
    """The follow-up of a task, and of every task that was skipped because of it, by the old ids.

    The follow-up of `a` is `a~2`, its next one `a~3`, and a label names the task that they repeat.
    """
    # A resumed program retries the same tasks again, and finds the follow-ups that it had.
    latest = _latest(tasks.submitted())
    wanted = tasks.named(task_id)
    _check(wanted, latest)
    old = {task_id: wanted}
    found = True
    while found:  # tasks of one submission come in any order, so once is not enough
        found = False
        for handle in latest.values():
            if handle.task_id not in old and _was_skipped_after(handle, old):
                old[handle.task_id] = handle
                found = True
    names = {each: tasks.ids.next(_original(handle)) for each, handle in old.items()}
    return {each: _follow_up(handle, names) for each, handle in old.items()}


def renamed(task: Task, names: Mapping[str, str]) -> Task:
    """The task under another id, and after tasks that have other ids. It has no key any more."""
    prompt = task.prompt
    if isinstance(prompt, Template):
        prompt = prompt.renamed(names)
    after = tuple(names.get(each, each) for each in task.after)
    return task.replace(id=names[task.id], after=after, prompt=prompt, key=None)


def _latest(tasks: Iterable[Handle[Any]]) -> dict[str, Handle[Any]]:
    """The last follow-up of each task, or the task itself, by the id of the first one."""
    return {_original(handle): handle for handle in tasks}


def _check(handle: Handle[Any], latest: Mapping[str, Handle[Any]]) -> None:
    task_id, outcome = handle.task_id, handle.outcome
    if outcome is None:
        raise InvalidOption(f"{task_id} has not ended; it is {handle.state}")
    if outcome.succeeded:
        raise InvalidOption(f"{task_id} succeeded; what succeeded is never run again")
    newer = latest.get(_original(handle), handle).task_id
    if newer != task_id:
        raise InvalidOption(f"{task_id} has been retried as {newer}; retry that one instead")
    if handle.parent is not None:
        raise InvalidOption(f"{task_id} is a child of {handle.parent[0]}; retry that task instead")
    if not handle.has_agent:
        raise InvalidOption(
            f"{task_id} ended in an earlier process, and its agent is not known here; submit the "
            "task again instead"
        )


def _was_skipped_after(handle: Handle[Any], old: Mapping[str, Handle[Any]]) -> bool:
    outcome = handle.outcome
    if outcome is None or outcome.status is not State.SKIPPED or not handle.has_agent:
        return False
    return not old.keys().isdisjoint(handle.task.after)


def _follow_up(handle: Handle[Any], names: Mapping[str, str]) -> Task:
    task = handle.task
    arguments: dict[str, Handle[Any] | None] = {}
    handles_in((task.args, dict(task.kwargs)), arguments)
    for each in names.keys() & arguments.keys():
        raise InvalidOption(
            f"{task.id} has the handle of {each} among its arguments, so it cannot be retried "
            "together with it; submit it again with the new handle"
        )
    labels = {**task.labels, RETRY_OF_LABEL: _original(handle)}
    return renamed(task, names).replace(labels=labels)


def _original(handle: Handle[Any]) -> str:
    return handle.task.labels.get(RETRY_OF_LABEL, handle.task_id)

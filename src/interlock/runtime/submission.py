"""Taking tasks in: checked as a whole, brought into the form the kernel compares, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context
from datetime import datetime
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption, UsageError
from interlock.execution.manner import Manner, manner_of
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim
from interlock.model.task import Task
from interlock.runtime.data import copied, handles_in
from interlock.runtime.handle import Handle
from interlock.runtime.output import check_output

if TYPE_CHECKING:
    from interlock.runtime.context import TaskContext
    from interlock.runtime.shell import Shell


def submit(
    shell: Shell,
    tasks: Sequence[Task],
    context: Context,
    parent: TaskContext | None,
    group: str,
    fail_fast: bool,
    deadline: float | None,
) -> list[Handle[Any]]:
    """Take in all of these tasks or, with an error, none. One handle for each, in their order."""
    handles: list[Handle[Any]] = []
    fresh: list[Handle[Any]] = []
    keys: dict[str, Handle[Any]] = {}
    known: dict[Claim, Claim] = {}
    for task in tasks:
        if not isinstance(task, Task):
            raise InvalidOption(f"{task!r} is no Task; write Task('some-id', agent, ...)")
        if task.key is not None:
            earlier = shell.keys.get(task.key) or keys.get(task.key)
            if earlier is not None:
                handles.append(earlier)
                continue
        if parent is not None and parent.attempt > 1:
            again = _again(shell, parent, task)
            if isinstance(again, Handle):
                handles.append(again)
                continue
            task = again
        manner = _manner(task)
        resolved = _resolved(shell, task, known)
        handle: Handle[Any] = Handle(shell, resolved, manner, context, parent)
        handles.append(handle)
        fresh.append(handle)
        if task.key is not None:
            keys[task.key] = handle
    if fresh:
        stimulus = s.Submit(tuple(each.task for each in fresh), group, fail_fast, deadline)
        if parent is not None:
            parent.check_open()
            stimulus = stimulus._replace(parent=parent.task.id, token=parent.token)
        shell.take_in(stimulus)
        shell.keys.update(keys)
        shell.handles.update((each.task.id, each) for each in fresh)
        shell.unsettled += len(fresh)
    return handles


def _again(shell: Shell, parent: TaskContext, task: Task) -> Task | Handle[Any]:
    """A child that an earlier attempt of the same parent may have submitted already.

    What succeeded then is not run again; what did not runs anew under a name of its own, because
    its outcome stands.
    """
    after = tuple(parent.renamed.get(each, each) for each in task.after)
    earlier = shell.handles.get(task.id)
    if earlier is not None and _is_of_earlier_attempt(earlier, parent):
        if earlier.outcome is not None and earlier.outcome.succeeded and _same(earlier, task):
            return earlier
        parent.renamed[task.id] = fresh = f"{task.id}~{parent.attempt}"
        return task.replace(id=fresh, after=after)
    return task.replace(after=after) if after != task.after else task


def _is_of_earlier_attempt(earlier: Handle[Any], parent: TaskContext) -> bool:
    """Whether it is a child of an earlier attempt of this parent."""
    before = earlier.parent
    return before is not None and before is not parent and before.task.id == parent.task.id


def _same(earlier: Handle[Any], task: Task) -> bool:
    old = earlier.task
    return old.agent is task.agent and (old.prompt, old.args, dict(old.kwargs)) == (
        task.prompt,
        task.args,
        dict(task.kwargs),
    )


def _manner(task: Task) -> Manner:
    try:
        manner = manner_of(task.agent)
        manner.check(task.args, task.kwargs)
    except UsageError as error:
        raise type(error)(f"task {task.id!r}: {error}") from None
    check_output(task.output, task.id)
    return manner


def _resolved(shell: Shell, task: Task, known: dict[Claim, Claim]) -> Task:
    """The task as the kernel takes it, and with its own copy of its data."""
    changes: dict[str, Any] = {}
    claims = shell.workspace.resolve(task.id, task.claims, known)
    if claims != task.claims:
        changes["claims"] = claims
    if isinstance(task.deadline, datetime):
        changes["deadline"] = max(0.0, task.deadline.timestamp() - shell.wall())
    if task.args or task.kwargs:
        found = dict.fromkeys(task.after)
        kwargs = dict(task.kwargs)
        try:
            handles_in((task.args, kwargs), found)
            changes["args"], changes["kwargs"] = copied(task.args), copied(kwargs)
        except RecursionError:
            raise InvalidOption(f"task {task.id!r}: its arguments contain themselves") from None
        if len(found) > len(task.after):
            changes["after"] = tuple(found)
    return task.replace(**changes) if changes else task

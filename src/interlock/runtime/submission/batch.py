"""Taking tasks in: checked as a whole, brought into the form the kernel compares, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.errors import InvalidOption, UnknownDependency, UsageError
from interlock.execution.call_spec import CallSpec, call_spec_of
from interlock.journal.schema.codec import Codec
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim
from interlock.model.command import Command
from interlock.model.event import Kind
from interlock.model.outcome import Outcome, State
from interlock.model.task import Task
from interlock.model.template import Template
from interlock.runtime.context import plain
from interlock.runtime.data import copied, handles_in
from interlock.runtime.handle import Handle, Submission
from interlock.runtime.output import as_type, check_output
from interlock.runtime.project import with_agent_defaults

if TYPE_CHECKING:
    from interlock.runtime.context import TaskContext
    from interlock.runtime.shell import Shell


class Prepared(NamedTuple):
    """A task that was looked through, as the kernel takes it, and how its agent is called."""

    task: Task
    spec: CallSpec


def prepare(shell: Shell, task: Task, known: dict[Claim, Claim] | None = None) -> Prepared:
    """Look through a task and bring it into the form the kernel takes. From any thread."""
    if shell.agents is not None:
        task = with_agent_defaults(task, shell.agents)
    return Prepared(_resolved(shell, task, {} if known is None else known), _call_spec(task))


def submit(
    shell: Shell,
    tasks: Sequence[Task | Prepared],
    context: Context,
    parent: TaskContext | None,
    group: str,
    fail_fast: bool,
    deadline: float | None,
) -> list[Handle[Any]]:
    """Take in all of these tasks or, with an error, none. One handle for each, in their order."""
    batch = _Batch(shell, context, parent)
    handles = [batch.add(task) for task in tasks]
    batch.take_in(group, fail_fast, deadline)
    return handles


class _Batch:
    """Tasks on their way in. Nothing is changed before `take_in`."""

    def __init__(self, shell: Shell, context: Context, parent: TaskContext | None) -> None:
        self._shell = shell
        self._parent = parent
        whose = None if parent is None else (parent.task.id, parent.token)
        self._submission = Submission(shell, context, whose)
        self._fresh: list[Handle[Any]] = []
        self._past: list[s.Past | None] = []
        self._recalled: list[Handle[Any]] = []
        self._keys: dict[str, Handle[Any]] = {}
        self._claims: dict[Claim, Claim] = {}

    def add(self, given: Task | Prepared) -> Handle[Any]:
        """Check a task; its handle, or that of the same task if it is known already."""
        task = given.task if isinstance(given, Prepared) else given
        if not isinstance(task, Task):
            raise InvalidOption(f"{task!r} is no Task; write Task('some-id', agent, ...)")
        shell, key = self._shell, task.key
        if shell.disk is not None:
            shell.disk.codec.check_name("the id of a task", task.id)
            if key is not None:
                shell.disk.codec.check_name("the key of a task", key)
        if key is not None:
            earlier = shell.keys.get(key) or self._keys.get(key)
            if earlier is not None:
                return earlier
        if self._parent is not None:
            again = _again(shell, self._parent, task)
            if isinstance(again, Handle):
                return again
            task = again
        elif shell.remembered is not None:
            task = shell.remembered.as_known(task)
        if not isinstance(given, Prepared) or task is not given.task:
            given = prepare(shell, task, self._claims)
        resolved, spec = given
        handle: Handle[Any] = Handle(self._submission, resolved, spec)
        if key is not None:
            self._keys[key] = handle
        found = None if shell.remembered is None else shell.remembered.find(resolved)
        if isinstance(found, s.Past) and isinstance(task.deadline, datetime):
            found = found._replace(deadline_at=None)  # a moment is said anew, a duration goes on
        if isinstance(found, Outcome):
            handle.outcome = as_type(found, task.output)
            self._recalled.append(handle)
        else:
            self._fresh.append(handle)
            self._past.append(found)
        return handle

    def take_in(self, group: str, fail_fast: bool, deadline: float | None) -> None:
        """Let the kernel have them, all or none."""
        shell, fresh, parent = self._shell, self._fresh, self._parent
        self._recall()
        if fresh:
            deadline = self._as_first_said(deadline)
            past = tuple(self._past) if any(self._past) else ()
            tasks = tuple(each.task for each in fresh)
            stimulus = s.Submit(tasks, group, fail_fast, deadline, past=past)
            if parent is not None:
                parent.check_open()
                stimulus = stimulus._replace(parent=parent.task.id, token=parent.token)
            shell.take_in(stimulus)
            shell.handles.update((each.task.id, each) for each in fresh)
            shell.ids.submitted(each.task.id for each in fresh)
            shell.unsettled += len(fresh)
        shell.keys.update(self._keys)
        if shell.remembered is not None:
            for handle in (*fresh, *self._recalled):
                shell.remembered.bring(handle.task.id)
                if shell.remembered.asks_about(handle.task.id):
                    shell.requests.ask_to_rerun(handle.task.id)
            for handle in fresh:
                shell.add_usage(handle.task.id, shell.remembered.usage(handle.task.id))

    def _as_first_said(self, deadline: float | None) -> float | None:
        """The time that a group has left: it does not begin anew when a run is taken up."""
        shell = self._shell
        if deadline is None or shell.remembered is None:
            return deadline
        until = shell.remembered.group_until(each.task for each in self._fresh)
        return deadline if until is None else max(0.0, until - shell.now())

    def _recall(self) -> None:
        """Tell the kernel what earlier runs have done: others may come after it."""
        shell = self._shell
        unknown = [each for each in self._recalled if each.task.id not in shell.handles]
        if unknown:
            ends = tuple((each.task.id, State.SUCCEEDED) for each in unknown)
            shell.take_in(s.Recall(ends))
            for handle in unknown:
                shell.note(Kind.SUBMITTED, handle.task.id, handle.task)
                shell.note(Kind.INHERITED, handle.task.id, handle.outcome)
        shell.handles.update((each.task.id, each) for each in self._recalled)


def _again(shell: Shell, parent: TaskContext, task: Task) -> Task | Handle[Any]:
    """A child that an earlier attempt of the same parent may have submitted already.

    What succeeded then is not run again; what did not runs anew under a name of its own, because
    its outcome stands.
    """
    after = tuple(parent.renamed.get(each, each) for each in task.after)
    name, count = task.id, 1
    while (earlier := shell.handles.get(name)) is not None:
        if _is_of_earlier_attempt(earlier, parent):
            if _is_done(shell, earlier, task):
                parent.renamed[task.id] = name
                return earlier
        elif count == 1 or earlier.parent == (parent.task.id, parent.token):
            break  # somebody else's name, or its own: the kernel has the error for it
        count += 1
        name = f"{task.id}~{count}"
    if name != task.id:
        parent.renamed[task.id] = name
    if isinstance(task.prompt, Template):
        task = task.replace(after=after, prompt=task.prompt.renamed(parent.renamed))
    return task.replace(id=name, after=after) if (name, after) != (task.id, task.after) else task


def _is_of_earlier_attempt(earlier: Handle[Any], parent: TaskContext) -> bool:
    """Whether it is a child of an earlier attempt of this parent, whatever that was called."""
    if earlier.parent is None:
        return False
    task_id, token = earlier.parent
    return token != parent.token and parent.plain_id in (task_id, plain(task_id))


def _is_done(shell: Shell, earlier: Handle[Any], task: Task) -> bool:
    """Whether a task has succeeded as another one, which had the same to do."""
    if earlier.outcome is None or not earlier.outcome.succeeded:
        return False
    again = task.replace(id=earlier.task.id, claims=earlier.task.claims)
    if earlier._call_spec is None and shell.remembered is not None:
        return shell.remembered.is_same(again) is True  # of its agent only the name is known
    codec = Codec()
    return codec.task(earlier.task)[1] == codec.task(again)[1]


def check_agent(task: Task) -> None:
    """What can be said of a task before there is a run: whether its agent can be called."""
    _call_spec(task)


def _call_spec(task: Task) -> CallSpec:
    try:
        spec = call_spec_of(task.agent)
        spec.check(task.args, task.kwargs)
        if isinstance(task.agent, Command):
            _check_prompt(task.agent, task)
    except UsageError as error:
        raise type(error)(f"task {task.id!r}: {error}") from None
    check_output(task.output, task.id)
    return spec


def _check_prompt(command: Command, task: Task) -> None:
    """A prompt that goes nowhere, or is missing, is a mistake."""
    if task.prompt is None and command.takes_prompt:
        raise InvalidOption(f"{command.name} takes a prompt, and the task has none; write prompt=")
    if task.prompt is not None and not command.takes_prompt:
        raise InvalidOption(
            f"{command.name} would not see the prompt; put {{prompt}} or {{prompt_file}} into its "
            "arguments, its variables or its stdin"
        )


def _resolved(shell: Shell, task: Task, known: dict[Claim, Claim]) -> Task:
    """The task as the kernel takes it, and with its own copy of its data."""
    changes: dict[str, Any] = {}
    claims = shell.workspace.resolve(task.id, task.claims, known)
    if claims != task.claims:
        changes["claims"] = claims
    if task.estimate is None and shell.estimates is not None:
        estimate = shell.estimates.of(task)
        if estimate is not None:
            changes["estimate"] = estimate
    if isinstance(task.deadline, datetime):
        changes["deadline"] = max(0.0, task.deadline.timestamp() - shell.wall())
    if task.args or task.kwargs:
        found: dict[str, Handle[Any] | None] = dict.fromkeys(task.after)
        kwargs = dict(task.kwargs)
        try:
            handles_in((task.args, kwargs), found)
            changes["args"], changes["kwargs"] = copied(task.args), copied(kwargs)
        except RecursionError:
            raise InvalidOption(f"task {task.id!r}: its arguments contain themselves") from None
        for handle in found.values():
            if handle is not None and handle._shell is not shell:
                raise UnknownDependency(
                    f"task {task.id!r}: {handle.task_id!r} among its arguments is a task of "
                    f"another run, {handle._shell.run_id}; pass its result instead"
                )
        if len(found) > len(task.after):
            changes["after"] = tuple(found)
    return task.replace(**changes) if changes else task

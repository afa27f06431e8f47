"""Making the job that a backend is given: the agent's call, its arguments, where it works."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from interlock.execution.backend import AttemptJob, CommandJob, Sink, marks
from interlock.execution.call_spec import BackendKind, CallSpec
from interlock.execution.workspaces.port import PreparedWorkspace
from interlock.journal.sqlite import SqliteJournal
from interlock.model.redaction import Redaction
from interlock.model.task import Task
from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.context import CURRENT, TaskContext
from interlock.runtime.data import delivered
from interlock.runtime.handle import Handle
from interlock.runtime.project import ProjectAgents
from interlock.runtime.task_table import TaskTable


class JobRun(Protocol):
    """What a job asks of the run that its attempt belongs to."""

    @property
    def run_id(self) -> str: ...
    @property
    def workspace(self) -> WorkspacePaths: ...
    @property
    def tasks(self) -> TaskTable: ...
    @property
    def disk(self) -> SqliteJournal | None: ...
    @property
    def redaction(self) -> Redaction: ...
    @property
    def agents(self) -> ProjectAgents | None: ...


def make_job(
    run: JobRun, context: TaskContext, spec: CallSpec, workspace: PreparedWorkspace, sink: Sink
) -> AttemptJob:
    """The job of an attempt. Raises what the data of its task raises when it is copied."""
    handle = context._handle
    task = handle.task
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if task.args or task.kwargs:
        args, kwargs = _arguments(run, task)
    if spec.wants_context:
        args = (context, *args)
    own = handle._submission.context.copy()
    call = partial(_call, context, spec.call, args, kwargs)
    job = AttemptJob(
        context.token, f"task-{task.id}", call, own, sink, spec.call, args, kwargs, workspace
    )
    if spec.backend not in (BackendKind.PROCESS, BackendKind.COMMAND):
        return job
    command_job = None
    if spec.backend is BackendKind.COMMAND:
        command_job = _command_job(run, context, workspace)
    # By these all processes of the attempt can be found, whatever becomes of us.
    return job._replace(
        command_job=command_job,
        marks=marks(run.run_id, task.id),
        lock=None if run.disk is None else run.disk.agents.path,
    )


def _command_job(run: JobRun, context: TaskContext, workspace: PreparedWorkspace) -> CommandJob:
    return CommandJob(
        context.task.agent,
        run.workspace.root,
        workspace,
        run.run_id,
        context.task.id,
        context.attempt,
        context.prompt or "",
        run.redaction,
        {} if run.agents is None else run.agents.secrets,
    )


def _arguments(run: JobRun, task: Task) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def result_of(handle: Handle[Any]) -> Any:
        # Of the handle: with `max_outcomes` the run may have forgotten its task meanwhile.
        return (handle.outcome or run.tasks.outcome_of(handle.task_id)).result

    args: tuple[Any, ...] = delivered(task.args, result_of) if task.args else ()
    kwargs: dict[str, Any] = delivered(dict(task.kwargs), result_of) if task.kwargs else {}
    return args, kwargs


def _call(
    context: TaskContext,
    agent: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    CURRENT.set(context)
    return agent(*args, **kwargs)

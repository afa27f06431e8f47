"""Checking one task and bringing it into the form that the kernel takes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from interlock.errors import InvalidOption, UnknownDependency, UsageError
from interlock.execution.call_spec import CallSpec, call_spec_of
from interlock.model.claim import Claim
from interlock.model.command import Command
from interlock.model.task import Task
from interlock.runtime.claim_paths import WorkspacePaths
from interlock.runtime.data import copied, handles_in
from interlock.runtime.estimates import Estimates
from interlock.runtime.handle import Handle
from interlock.runtime.loop_thread import LoopThread
from interlock.runtime.output import check_output
from interlock.runtime.project import ProjectAgents, with_agent_defaults
from interlock.runtime.submission.prepared import Prepared


class Preparation:
    """Prepares the tasks of one run. From any thread, unless there are `estimates`."""

    def __init__(
        self,
        loop_thread: LoopThread,
        workspace: WorkspacePaths,
        wall: Callable[[], float],
        agents: ProjectAgents | None,
        estimates: Estimates | None,
    ) -> None:
        self._loop_thread = loop_thread
        """By which a handle of this run is recognized: each run has its own."""
        self._workspace = workspace
        self._wall = wall
        self._agents = agents
        self._estimates = estimates

    @property
    def fold_case(self) -> bool:
        """Whether the file system of the workspace ignores case."""
        return self._workspace.fold_case

    def prepare(self, task: Task, known: dict[Claim, Claim] | None = None) -> Prepared:
        """Check a task and give it its final form.

        `known` are claims of the same submission that have been resolved already: a path that
        many tasks claim is looked up on disk once.
        """
        if self._agents is not None:
            task = with_agent_defaults(task, self._agents)
        return Prepared(self._resolved(task, {} if known is None else known), _call_spec(task))

    def _resolved(self, task: Task, known: dict[Claim, Claim]) -> Task:
        """The task with comparable claims and with its own copy of its data."""
        changes: dict[str, Any] = {}
        claims = self._workspace.resolve(task.id, task.claims, known)
        # Most tasks need no change, and then no copy of the task is made.
        if claims != task.claims:
            changes["claims"] = claims
        if task.estimate is None and self._estimates is not None:
            estimate = self._estimates.of(task)
            if estimate is not None:
                changes["estimate"] = estimate
        if isinstance(task.deadline, datetime):
            # The kernel has no wall clock: it takes deadlines in seconds from now.
            changes["deadline"] = max(0.0, task.deadline.timestamp() - self._wall())
        if task.args or task.kwargs:
            changes |= self._data(task)
        return task.replace(**changes) if changes else task

    def _data(self, task: Task) -> dict[str, Any]:
        """Copied arguments, and the dependencies that handles among them make."""
        changes: dict[str, Any] = {}
        found: dict[str, Handle[Any] | None] = dict.fromkeys(task.after)
        kwargs = dict(task.kwargs)
        try:
            handles_in((task.args, kwargs), found)
            changes["args"], changes["kwargs"] = copied(task.args), copied(kwargs)
        except RecursionError:
            raise InvalidOption(f"task {task.id!r}: its arguments contain themselves") from None
        for handle in found.values():
            # Its result may never arrive here: the other run has its own life.
            if handle is not None and handle._run.loop_thread is not self._loop_thread:
                raise UnknownDependency(
                    f"task {task.id!r}: {handle.task_id!r} among its arguments is a task of "
                    f"another run, {handle._run.run_id}; pass its result instead"
                )
        if len(found) > len(task.after):
            changes["after"] = tuple(found)
        return changes


def check_agent(task: Task) -> None:
    """Check what can be checked before there is a run: that the task's agent can be called."""
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

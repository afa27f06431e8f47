"""Attempts that are not gone: prepared, started, stopped, and reported to the kernel when they end.

    Start ──▶ prepare ──▶ backend ──▶ ended ──▶ audit ──▶ release ──▶ Ended, Gone for the kernel
                 └─ Stop ──────────────────────────────────┘

Why it is right. An attempt is in `alive` from its start until its workspace has been released;
only then is it reported as gone, and only that report releases its claims. Every way out of the
steps above leads through `_exit`, which takes the workspace out of the state and releases it: no
workspace is released twice. A backend has the job exactly while `context._backend` is set, so a
stop reaches either the backend or the running step, never neither.

What an attempt costs here with a workspace that answers at once: one dictionary entry, its context
and its state, and no asyncio task. Known limit: the timeout of an attempt includes its prepare and
its audit.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, Protocol

from interlock.errors import AttemptOver
from interlock.execution.backend import Backend, Launched
from interlock.execution.call_spec import BackendKind
from interlock.execution.ending import Ending, raised
from interlock.execution.workspaces.port import (
    PreparedWorkspace,
    WorkspaceAudit,
    WorkspaceRequest,
    Workspaces,
)
from interlock.execution.workspaces.shared import SharedWorkspaces
from interlock.journal.sqlite import SqliteJournal
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Start, Stop
from interlock.model.claim import Claim
from interlock.model.event import Kind
from interlock.model.outcome import State
from interlock.model.redaction import Redaction
from interlock.model.task import Task
from interlock.runtime.attempt_jobs import make_job
from interlock.runtime.attempt_state import FAILED, STOPPED, SUCCEEDED, AttemptState
from interlock.runtime.conditions import Conditions
from interlock.runtime.context import ContextRun, TaskContext
from interlock.runtime.ending_checks import (
    with_own_value,
    with_prefix,
    with_rate_held,
    with_storable_value,
)
from interlock.runtime.log import Log
from interlock.runtime.orphans import Orphan, keep_orphan
from interlock.runtime.project import ProjectAgents
from interlock.runtime.workspace_steps import Then, WorkspaceSteps
from interlock.system.process_identity import boot_id


class AttemptsRun(ContextRun, Protocol):
    """What attempts ask of the run that they belong to."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def disk(self) -> SqliteJournal | None: ...
    @property
    def redaction(self) -> Redaction: ...
    @property
    def agents(self) -> ProjectAgents | None: ...
    @property
    def broken(self) -> BaseException | None: ...
    @property
    def conditions(self) -> Conditions: ...
    @property
    def log(self) -> Log: ...

    def report(self, report: s.Ended | s.Gone) -> None:
        """An attempt has ended or is gone."""

    def note(self, kind: Kind, task_id: str, data: Any = None) -> None:
        """Record an event that the kernel need not know."""


class Attempts:
    """The sink of all backends: turns endings into reports for the kernel."""

    def __init__(
        self, run: AttemptsRun, chance: Random, grace: float, refuses_unserializable: bool = True
    ) -> None:
        self._run = run
        self._chance = chance
        self.grace = grace
        self.alive: dict[int, TaskContext] = {}
        """By token."""
        self.backends: Mapping[BackendKind, Backend] = {}
        self.workspaces: Workspaces = SharedWorkspaces(run.workspace.root)
        self._fixed = self.workspaces.caps.fixed
        self._steps = WorkspaceSteps(run.loop)
        self._called_off: set[int] = set()
        """Tokens of attempts that were told to stop before their start was in the journal."""
        self._endings: dict[str, Ending] = {}
        """How the last attempt of a task ended, until the task settles."""
        self._refuses_unserializable = refuses_unserializable
        """Whether a result that a journal on disk cannot hold is a failure."""
        self.orphans: dict[int, Orphan] = {}
        """Those that the run could not wait for."""
        self.fatal: tuple[str, BaseException] | None = None
        """The first task that ran out of memory or stack, and with what."""

    def open(self, backends: Mapping[BackendKind, Backend], workspaces: Workspaces) -> None:
        """From now on attempts run in these backends and work in these workspaces."""
        self.backends, self.workspaces = backends, workspaces
        self._fixed = workspaces.caps.fixed

    # -- looking ----------------------------------------------------------------------------

    def context_of(self, token: int) -> TaskContext | None:
        """The context of an attempt that is alive."""
        return self.alive.get(token)

    def is_alive(self, task_id: str) -> bool:
        """Whether an attempt at a task is alive."""
        return any(context.task.id == task_id for context in self.alive.values())

    def take_ending(self, task_id: str) -> Ending | None:
        """How the last attempt at a task ended, if it was heard; asked once, when it settles."""
        return self._endings.pop(task_id, None)

    def take_fatal(self, task_ids: Iterable[str]) -> tuple[str, BaseException] | None:
        """The task among these that ran out of memory or stack, and with what; said once."""
        fatal = self.fatal
        if fatal is None or fatal[0] not in task_ids:
            return None
        self.fatal = None
        return fatal

    def leave_behind(self) -> list[str]:
        """Hold the claims of attempts that would not stop against later runs; their tasks' ids."""
        for token, context in self.alive.items():
            name = f"{context.task.id} of run {self._run.run_id}"
            claims = context.task.claims + context.extra
            on_loop = self._run.loop if context.runs_on_the_loop() else None
            self.orphans[token] = orphan = Orphan(name, claims, on_loop)
            keep_orphan(self._run.workspace.root, orphan)
        return [context.task.id for context in self.alive.values()]

    # -- starting ---------------------------------------------------------------------------

    def start(self, start: Start) -> None:
        """Begin an attempt: prepare its workspace, then hand it to its backend."""
        token = start.token
        if token in self._called_off:
            self._called_off.remove(token)
            self._run.report(s.Gone(start.task_id, token))
            return
        handle = self._run.tasks.named(start.task_id)
        context = TaskContext(self._run, handle, start.attempt, token)
        self.alive[token] = context
        if self._fixed is not None:  # most attempts come here
            self._launch(context, self._fixed)
            return
        request = WorkspaceRequest(
            self._run.run_id, start.task_id, start.attempt, token, handle.task.claims
        )
        try:
            workspace = self.workspaces.prepare(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this attempt's failure
            self._prepared(context, None, error)
            return
        if isinstance(workspace, PreparedWorkspace):  # it needs no asyncio task
            self._launch(context, workspace)
        else:
            self._take_step(context, workspace, partial(self._prepared, context))

    def _prepared(self, context: TaskContext, workspace: Any, error: BaseException | None) -> None:
        token = context.token
        if error is None and not isinstance(workspace, PreparedWorkspace):
            error = TypeError(f"prepare() answered {workspace!r}, which is no PreparedWorkspace")
        if error is not None:
            self.ended(token, with_prefix(raised(error), "the workspace could not be prepared"))
            return
        if context.cancelled():  # told to stop meanwhile: its agent is not started
            context._state.workspace = workspace
            self._exit(context, context._state)
        else:
            self._launch(context, workspace)

    def _launch(self, context: TaskContext, workspace: PreparedWorkspace) -> None:
        """Hand an attempt to its backend."""
        state = context._state
        state.folder = workspace.folder
        if workspace is not self._fixed:
            state.workspace = workspace
        spec = context._handle._call_spec
        assert spec is not None, "a task that is only remembered cannot start"
        try:
            job = make_job(self._run, context, spec, workspace, self)
        except Exception as error:  # noqa: BLE001 - a stranger's data that cannot be copied
            self.ended(context.token, raised(error))
            return
        state.has_started, state.release = True, STOPPED
        context._backend = backend = self.backends[spec.backend]
        backend.submit(job)

    def _take_step(
        self, context: TaskContext, answer: Any, then: Then, *, cancellable: bool = True
    ) -> None:
        """Tell of the answer of a workspace when it is there."""
        if not isinstance(answer, Awaitable):
            then(answer, None)
            return
        name = f"workspace-{context.task.id}"
        self._steps.run(context.token, name, answer, then, cancellable=cancellable)

    # -- stopping ---------------------------------------------------------------------------

    def stop(self, stop: Stop) -> None:
        """Tell an attempt to stop."""
        context = self.alive.get(stop.token)
        if context is not None:
            over = AttemptOver(f"task {stop.task_id!r} was told to stop: {stop.reason}")
            self._run.requests.end(stop.token, over)
            self._tell_to_stop(context, self.grace)

    def _tell_to_stop(self, context: TaskContext, grace: float) -> None:
        if context._backend is not None:
            context._backend.cancel(context.token, grace)
        else:
            self._steps.cancel(context.token)

    def close(self, token: int) -> None:
        """The kernel has decided the outcome of an attempt: it may have no more effects."""
        context = self.alive.get(token)
        if context is None:
            self._called_off.add(token)
            return
        context.close()
        state = context._state
        if state.ending is not None:  # it has come too late, as in an audit that takes too long
            state.ending, state.release = None, STOPPED

    def extend(self, token: int, claims: tuple[Claim, ...]) -> None:
        """An attempt was granted more."""
        context = self.alive.get(token)
        if context is not None:
            context.extra += claims

    def remind(self, grace: float) -> None:
        """Tell all that are over, and not gone, once more: the run will not wait for long."""
        for context in list(self.alive.values()):
            if context.cancelled():
                self._tell_to_stop(context, grace)

    def none_killable(self) -> bool:
        """Whether all that is alive can only be asked to stop."""
        alive = [context._backend for context in self.alive.values()]
        return not any(backend is not None and backend.caps.kill for backend in alive)

    def stop_all(self) -> None:
        """Have everything stop, whatever the kernel knows."""
        for context in self.alive.values():
            context.close()
        self.remind(self.grace)

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """From any thread: have this called on the event loop."""
        self._run.loop_thread.post(function, *args)

    # -- the sink ---------------------------------------------------------------------------

    def launched(self, token: int, launched: Launched) -> None:
        """An attempt has a process: a later coordinator has to be able to find it."""
        context = self.alive.get(token)
        if context is not None:
            about = {"token": token, "attempt": context.attempt, "boot": boot_id()}
            data = about | launched._asdict()
            self._run.note(Kind.LAUNCHED, context.task.id, data)

    def ended(self, token: int, ending: Ending, *, gone: bool = True) -> None:
        """An attempt ended."""
        context = self.alive.get(token)
        if context is None:
            return
        state = context._state
        # Otherwise its outcome was decided when it was told to stop.
        if not context.cancelled() and token not in self.orphans:
            context.close()
            task = context._handle.task
            if ending.value is not None or ending.error is not None or task.output is not None:
                ending = self._checked(task, ending)
            state.ending = ending
            if state.has_started:
                state.release = SUCCEEDED if ending.status is State.SUCCEEDED else FAILED
            if not gone and not self.workspaces.caps.audits:
                self._report(context, state, gone=False)
        if gone:
            self._exit(context, state)

    def gone(self, token: int) -> None:
        """Nothing is left of an attempt."""
        context = self.alive.get(token)
        if context is not None:
            self._exit(context, context._state)

    def _checked(self, task: Task, ending: Ending) -> Ending:
        if ending.value is not None or task.output is not None:
            ending = with_own_value(ending, task)
            disk = self._run.disk
            if disk is not None and self._refuses_unserializable:
                ending = with_storable_value(ending, disk.codec.dumps)
        if ending.rate:
            ending = with_rate_held(ending, self._run.rates.hold)
        if ending.exception is not None:
            # Its story is told in the record: what its frames hold need not be kept with it.
            traceback.clear_frames(ending.exception.__traceback__)
            if ending.fatal and self.fatal is None:
                self.fatal = (task.id, ending.exception)
        return ending

    # -- the end ----------------------------------------------------------------------------

    def _exit(self, context: TaskContext, state: AttemptState) -> None:
        """Nothing of the agent is left: audit and release the workspace, then report that."""
        context._backend = None
        if state.workspace is None:
            self._exited(context, state)
        elif state.has_started and self.workspaces.caps.audits:
            self._audit(context, state, state.workspace)
        else:
            self._release(context, state, None)

    def _audit(
        self, context: TaskContext, state: AttemptState, workspace: PreparedWorkspace
    ) -> None:
        try:
            audit = self.workspaces.audit(workspace)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this attempt's failure
            self._audited(context, state, None, error)
            return
        self._take_step(context, audit, partial(self._audited, context, state))

    def _audited(
        self, context: TaskContext, state: AttemptState, audit: Any, error: BaseException | None
    ) -> None:
        if error is None and not isinstance(audit, WorkspaceAudit):
            error = TypeError(f"audit() answered {audit!r}, which is no WorkspaceAudit")
        ending = state.ending
        if error is not None and ending is not None and ending.status is State.SUCCEEDED:
            # What it has changed is not known, so it cannot be taken for a success.
            state.ending = with_prefix(raised(error), "the workspace could not be audited")
            state.release = FAILED
        self._release(context, state, audit if error is None else None)

    def _release(
        self, context: TaskContext, state: AttemptState, audit: WorkspaceAudit | None
    ) -> None:
        workspace, state.workspace = state.workspace, None
        assert workspace is not None, "a workspace is released once"
        try:
            how = state.release if audit is None else state.release._replace(audit=audit)
            answer = self.workspaces.release(workspace, how)
        except Exception as error:  # noqa: BLE001 - it is logged: the attempt is over all the same
            self._released(context, state, None, error)
            return
        if answer is None:
            self._exited(context, state)
            return
        # The outcome is known; only what the attempt holds waits for a release that takes time.
        if state.ending is not None:
            self._report(context, state, gone=False)
        released = partial(self._released, context, state)
        self._take_step(context, answer, released, cancellable=False)

    def _released(
        self, context: TaskContext, state: AttemptState, _: Any, error: BaseException | None
    ) -> None:
        if error is not None:
            self._run.log.workspace_not_released(context.task.id, error)
        self._exited(context, state)

    def _exited(self, context: TaskContext, state: AttemptState) -> None:
        """Nothing is left of an attempt, nor of its workspace."""
        token = context.token
        del self.alive[token]
        orphan = self.orphans.pop(token, None)
        if orphan is not None:
            orphan.release()
        elif state.ending is not None:
            self._report(context, state, gone=True)
        else:
            self._run.report(s.Gone(context.task.id, token))
        if self._run.broken is not None:
            self._run.conditions.look()  # there are no more turns that would do it

    def _report(self, context: TaskContext, state: AttemptState, *, gone: bool) -> None:
        """Tell the kernel how an attempt ended."""
        ending, state.ending = state.ending, None
        assert ending is not None, "an ending is reported once"
        task_id, token = context._handle.task.id, context.token
        self._endings[task_id] = ending
        chance = 0.0 if ending.status is State.SUCCEEDED else self._chance.random()
        self._run.report(
            s.Ended(task_id, token, ending.status, ending.error, ending.retry_after, chance, gone)
        )

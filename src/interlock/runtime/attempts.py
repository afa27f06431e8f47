"""Attempts that are not gone: started and stopped through backends, which report to here."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Protocol

from interlock.errors import AgentFailed, AttemptOver, InvalidOption, UnknownResource
from interlock.execution.backend import AttemptJob, Backend, CommandJob, Launched, marks
from interlock.execution.call_spec import BackendKind
from interlock.execution.ending import Ending, raised
from interlock.journal.sqlite import SqliteJournal
from interlock.kernel import stimuli as s
from interlock.kernel.instructions import Start, Stop
from interlock.model.claim import Claim
from interlock.model.command import Command
from interlock.model.event import Kind
from interlock.model.outcome import ErrorRecord, State
from interlock.model.redaction import Redaction
from interlock.model.task import Task
from interlock.runtime.conditions import Conditions
from interlock.runtime.context import CURRENT, ContextRun, TaskContext
from interlock.runtime.data import copied, delivered
from interlock.runtime.orphans import Orphan, keep_orphan
from interlock.runtime.output import validated
from interlock.runtime.project import ProjectAgents
from interlock.runtime.waitable import Waitable
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

    def start(self, start: Start) -> None:
        """Begin an attempt."""
        if start.token in self._called_off:
            self._called_off.remove(start.token)
            self._run.report(s.Gone(start.task_id, start.token))
            return
        handle = self._run.tasks.named(start.task_id)
        context = TaskContext(self._run, handle, start.attempt, start.token)
        self.alive[start.token] = context
        spec, task = handle._call_spec, handle.task
        assert spec is not None, "a task that is only remembered cannot start"
        context._backend = backend = self.backends[spec.backend]
        try:
            args, kwargs = self._arguments(task)
            if spec.wants_context:
                args = (context, *args)
            own = handle._submission.context.copy()
            call = partial(_call, context, spec.call, args, kwargs)
            name = f"task-{task.id}"
            job = AttemptJob(start.token, name, call, own, self, spec.call, args, kwargs)
            if spec.backend in (BackendKind.PROCESS, BackendKind.COMMAND):
                job = self._with_processes(job, context, spec.backend)
        except Exception as error:  # noqa: BLE001 - a stranger's data that cannot be copied
            self.ended(start.token, raised(error))
            return
        backend.submit(job)

    def _with_processes(
        self, job: AttemptJob, context: TaskContext, place: BackendKind
    ) -> AttemptJob:
        """What is asked of attempts that run in processes: that all of them can be found."""
        disk = self._run.disk
        return job._replace(
            command_job=self._command_job(context) if place is BackendKind.COMMAND else None,
            marks=marks(self._run.run_id, context.task.id),
            lock=None if disk is None else disk.agents.path,
        )

    def _command_job(self, context: TaskContext) -> CommandJob:
        run, task = self._run, context.task
        return CommandJob(
            task.agent,
            run.workspace.root,
            run.run_id,
            task.id,
            context.attempt,
            context.prompt or "",
            run.redaction,
            {} if run.agents is None else run.agents.secrets,
        )

    def _arguments(self, task: Task) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        if task.args:
            args = delivered(task.args, self._result_of)
        if task.kwargs:
            kwargs = delivered(dict(task.kwargs), self._result_of)
        return args, kwargs

    def _result_of(self, task_id: str) -> Any:
        return self._run.tasks.outcome_of(task_id).result

    def stop(self, stop: Stop) -> None:
        """Tell an attempt to stop."""
        context = self.alive.get(stop.token)
        if context is not None:
            over = AttemptOver(f"task {stop.task_id!r} was told to stop: {stop.reason}")
            self._run.requests.end(stop.token, over)
            if context._backend is not None:
                context._backend.cancel(stop.token, self.grace)

    def close(self, token: int) -> None:
        """The outcome of an attempt is decided: it may have no more effects."""
        context = self.alive.get(token)
        if context is not None:
            context.close()
        else:
            self._called_off.add(token)

    def open(self, backends: Mapping[BackendKind, Backend]) -> None:
        """From now on attempts run in these backends."""
        self.backends = backends

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

    def extend(self, token: int, claims: tuple[Claim, ...]) -> None:
        """An attempt was granted more."""
        context = self.alive.get(token)
        if context is not None:
            context.extra += claims

    def remind(self, grace: float) -> None:
        """Tell all that are over, and not gone, once more: the run will not wait for long."""
        for token, context in list(self.alive.items()):
            if context.cancelled() and context._backend is not None:
                context._backend.cancel(token, grace)

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
        """An attempt has a process: whoever comes after us has to be able to find it."""
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
        task = context.task
        if gone and self._was_left(token):
            return
        if context.cancelled():  # its outcome was decided when it was told to stop
            if gone:
                self._run.report(s.Gone(task.id, token))
            return
        context.close()
        if ending.value is not None or task.output is not None:
            ending = self._stored(_accepted(ending, task))
        if ending.rate:
            ending = self._held(ending)
        if ending.exception is not None:
            # Its story is told in the record: what its frames hold need not be kept with it.
            traceback.clear_frames(ending.exception.__traceback__)
            if ending.fatal and self.fatal is None:
                self.fatal = (task.id, ending.exception)
        self._endings[task.id] = ending
        chance = 0.0 if ending.status is State.SUCCEEDED else self._chance.random()
        self._run.report(
            s.Ended(task.id, token, ending.status, ending.error, ending.retry_after, chance, gone)
        )

    def _held(self, ending: Ending) -> Ending:
        """Have everybody wait who uses the rate that a failure names."""
        assert ending.error is not None
        try:
            self._run.rates.hold(ending.rate, ending.retry_after)
        except UnknownResource as error:
            said = f"{ending.error.message} ({error})"
            return ending._replace(error=replace(ending.error, message=said))
        return ending

    def _stored(self, ending: Ending) -> Ending:
        """The ending, if its value can be kept; or a failure that says what is in the way."""
        disk = self._run.disk
        if disk is None or not self._refuses_unserializable or ending.value is None:
            return ending
        try:
            disk.codec.dumps(ending.value, "result")
        except Exception as error:  # noqa: BLE001 - a stranger's data may raise anything
            return raised(error)._replace(error=ErrorRecord("NotStorable", str(error), "", False))
        return ending

    def gone(self, token: int) -> None:
        """Nothing is left of an attempt."""
        context = self.alive.get(token)
        if context is not None and not self._was_left(token):
            self._run.report(s.Gone(context.task.id, token))

    def _was_left(self, token: int) -> bool:
        """Nothing is left of an attempt; whether the run was over before."""
        del self.alive[token]
        orphan = self.orphans.pop(token, None)
        if orphan is not None:
            orphan.release()
        if self._run.broken is not None:
            self._run.conditions.look()  # there are no more turns that would do it
        return orphan is not None


def _accepted(ending: Ending, task: Task) -> Ending:
    """The same ending with our own copy of its value, as the type that it must have."""
    if ending.status is not State.SUCCEEDED:
        return ending
    if isinstance(ending.value, Waitable):
        what = ending.value.drop()
        return raised(AgentFailed(f"returned {what} without awaiting it", retryable=False))
    try:
        ending = validated(ending, task.output, printed=isinstance(task.agent, Command))
        return ending._replace(value=copied(ending.value))
    except RecursionError:
        return raised(InvalidOption("the result contains itself, or is nested too deeply"))
    except Exception as error:  # noqa: BLE001 - a stranger's data, or its validation, raised
        return raised(error)


def _call(
    context: TaskContext,
    agent: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    CURRENT.set(context)
    return agent(*args, **kwargs)

"""Carries out one run of a project: shown by a watcher, and open to requests of other processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from interlock.errors import FatalError, InterlockError, ShuttingDown, UsageError
from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.journal.state.run_fold import RunFold
from interlock.model.event import Event
from interlock.model.outcome import State
from interlock.model.why import Explanation
from interlock.plan.records import Plan, Project
from interlock.runtime.control.handler import RequestHandler
from interlock.runtime.control.server import ControlServer
from interlock.runtime.runtime import Runtime
from interlock.service.exit_codes import ExitCode
from interlock.service.folder_lock import exclusive_run
from interlock.service.journal_watch import JournalVanished, JournalWatch
from interlock.service.project_folder import ProjectFolder
from interlock.service.run_log import logging_to
from interlock.service.run_request import NAMESPACE, RunRequest, from_record


class WatchedRun(Protocol):
    """What a watcher can ask about the run that it shows."""

    @property
    def started_at(self) -> float: ...

    def facts(self) -> RunFacts: ...

    def task(self, task_id: str) -> TaskFacts | None: ...

    def why(self, task_id: str) -> Explanation | None: ...


class Watcher(Protocol):
    """Shows a run while it is in progress. The command that starts a run hands one in."""

    def begin(self, run: WatchedRun) -> None:
        """Start showing the run."""

    def event(self, event: Event) -> None:
        """Take note of an event. Called on the event loop: it must not block."""

    def end(self, *, hurry: bool = False) -> None:
        """Stop, and show the summary. `hurry`: do not wait long for a slow terminal."""

    def give_up(self) -> None:
        """Show no summary at the end: there is nothing to sum up."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """How a run ended, for its caller."""

    code: int
    facts: RunFacts
    unsubmitted: tuple[str, ...]
    """Unfinished tasks of a resumed run that are not in the plan any more."""


class ProjectCoordinator:
    """Carries out one run of a project."""

    def __init__(
        self,
        folder: ProjectFolder,
        project: Project,
        plan: Plan,
        request: RunRequest,
        watcher: Watcher,
        *,
        resume: bool | str | None = None,
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._request = request
        self._watcher = watcher
        deadline = request.deadline if request.deadline is not None else plan.deadline
        self._deadline = deadline
        self._fail_fast = plan.fail_fast if request.fail_fast is None else request.fail_fast
        self._rt = Runtime.for_project(
            project,
            journal=folder.journal,
            resume=resume,
            on_changed="rerun",
            max_parallel=request.max_parallel or plan.max_parallel,
        )
        self._fold = RunFold("", 0.0)
        self._interrupted = False

    @property
    def started_at(self) -> float:
        """When the run began."""
        return self._fold.started_at

    def task(self, task_id: str) -> TaskFacts | None:
        """The facts of one task; None if the run does not have it."""
        return self._fold.task(task_id)

    def facts(self) -> RunFacts:
        """The facts of the run at this moment."""
        return self._fold.facts(time.time())

    def why(self, task_id: str) -> Explanation | None:
        """Why a task is where it is; None if the run cannot say, for example after its end."""
        try:
            return self._rt.why(task_id)
        except InterlockError:
            return None

    async def run(self) -> FinishedRun:
        """Carry out the run until it ends or is interrupted."""
        code: int | None = None
        unsubmitted: tuple[str, ...] = ()
        journal = JournalWatch(self._folder.journal)
        try:
            # The lock and the socket come first: if one of them cannot be had, no empty run is left
            # in the journal. The Runtime is closed first: while the attempts that a Ctrl-C stopped
            # are ending, requests are still answered and no other run can begin.
            with exclusive_run(self._folder):
                async with ControlServer(self._folder.folder) as control, self._rt as rt:
                    await self._begin(rt)
                    async with journal.ends_the_block():
                        await self._carry_out(rt, control)
                    unsubmitted = rt.unsubmitted
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
        except SystemExit as signalled:
            code = int(signalled.code or 0)
        except FatalError:
            code = ExitCode.FAILED
        except InterlockError:
            # A vanished journal may show itself as any error. It is the one to report: without the
            # journal it is unknown how far the run got.
            try:
                journal.check()
            except JournalVanished:
                self._watcher.give_up()
                raise
            raise
        self._interrupted = code is not None and code != ExitCode.FAILED
        facts = self.facts()
        if code is None:
            submitted = [task for task in facts.tasks if task.id not in unsubmitted]
            code = _exit_code(submitted, self._deadline)
        return FinishedRun(code, facts, unsubmitted)

    def show_the_end(self) -> None:
        """Show the summary. Call it outside the event loop: a slow terminal may block it."""
        self._watcher.end(hurry=self._interrupted)

    async def _begin(self, rt: Runtime) -> None:
        with self._folder.reader() as reader:
            run = reader.run(rt.run_id)
            self._fold = RunFold(run.id, run.started_at, plan=self._request.title)
            self._fold.take(reader.all_events(run))
            before = from_record(reader.record(NAMESPACE, run.id))
        rt.listen(self._on_event)
        request = self._request
        if before is not None:
            # Resuming a part of a run does not give up the rest of it.
            request = replace(request, only=before.only)
        await rt.records(NAMESPACE).put(rt.run_id, request.as_record())

    def _on_event(self, event: Event) -> None:
        if event.number > self._fold.last:
            self._fold.take((event,))
            self._watcher.event(event)

    async def _carry_out(self, rt: Runtime, control: ControlServer) -> None:
        tasks = rt.tasks_from(self._plan)
        requests = RequestHandler(rt, self._fold, tasks)
        tasks += requests.restored_follow_ups()
        await control.answer_with(requests.handle)
        self._watcher.begin(self)
        try:
            await rt.run(tasks, fail_fast=self._fail_fast, deadline=self._deadline)
            await requests.wait_for_follow_ups()
        except ShuttingDown:
            pass  # the shutdown was requested, and is under way
        except UsageError:
            self._watcher.give_up()  # nothing was started: the error is all there is to show
            raise


def _exit_code(tasks: Sequence[TaskFacts], deadline: float | None) -> ExitCode:
    states = {task.state for task in tasks}
    if not all(state.is_end for state in states):
        return ExitCode.INTERRUPTED
    if states <= {State.SUCCEEDED}:
        return ExitCode.SUCCEEDED
    if State.CONFLICTED in states:
        return ExitCode.CONFLICTED
    late = any(task.ended_by == "run_deadline" for task in tasks)
    return ExitCode.DEADLINE if deadline is not None and late else ExitCode.FAILED


def carry_out(coordinator: ProjectCoordinator, folder: ProjectFolder) -> FinishedRun:
    """Carry out a run from code without an event loop, with its log, to the end of its summary."""
    try:
        with logging_to(folder):
            return asyncio.run(coordinator.run())
    except* UsageError as problems:
        raise problems.exceptions[0] from None
    finally:
        coordinator.show_the_end()

"""One run of a project: carried out, watched, and open to commands from other terminals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import logging.handlers
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from interlock.errors import FatalError, InterlockError, ShuttingDown, UsageError
from interlock.model.event import Event
from interlock.model.outcome import State
from interlock.model.why import Explanation
from interlock.plan.records import Plan, Project
from interlock.runtime.control.socket import ControlServer
from interlock.runtime.log import LOGGER, TextFormatter
from interlock.runtime.runtime import Runtime
from interlock.service.folder_lock import alone_in
from interlock.service.journal_watch import JournalVanished, JournalWatch
from interlock.service.project_folder import Place
from interlock.service.request import NAMESPACE, Request, from_record
from interlock.service.run_commands import Steering
from interlock.views.cli.exit_codes import Exit
from interlock.views.facts import RunFacts, TaskFacts
from interlock.views.fold import RunFold

_LOG_SIZE = 5_000_000


class Look(Protocol):
    """What a watcher may look at."""

    @property
    def started_at(self) -> float: ...

    def facts(self) -> RunFacts: ...

    def task(self, task_id: str) -> TaskFacts | None: ...

    def why(self, task_id: str) -> Explanation | None: ...


class Watcher(Protocol):
    """Shows a run while it goes on."""

    def begin(self, look: Look) -> None: ...

    def event(self, event: Event) -> None: ...

    def end(self, *, hurry: bool = False) -> None: ...

    def give_up(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, for its caller."""

    code: int
    facts: RunFacts
    unsubmitted: tuple[str, ...]
    """Unfinished tasks of the run that was taken up which this time nobody has asked for."""


class Coordinator:
    """Carries out one run."""

    def __init__(
        self,
        place: Place,
        project: Project,
        plan: Plan,
        request: Request,
        watcher: Watcher,
        *,
        resume: bool | str | None = None,
    ) -> None:
        self._place = place
        self._plan = plan
        self._request = request
        self._watcher = watcher
        deadline = request.deadline if request.deadline is not None else plan.deadline
        self._deadline = deadline
        self._fail_fast = plan.fail_fast if request.fail_fast is None else request.fail_fast
        self._rt = Runtime.for_project(
            project,
            journal=place.journal,
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
        """One task, if the run has it."""
        return self._fold.task(task_id)

    def facts(self) -> RunFacts:
        """How it stands now."""
        return self._fold.facts(time.time())

    def why(self, task_id: str) -> Explanation | None:
        """Why a task is where it is; None if nobody can say (any more)."""
        try:
            return self._rt.why(task_id)
        except InterlockError:
            return None

    async def run(self) -> Ended:
        """Carry it out to its end, or until somebody interrupts it."""
        code: int | None = None
        unsubmitted: tuple[str, ...] = ()
        journal = JournalWatch(self._place.journal)
        try:
            # What could keep the run from beginning comes first: no empty run is left behind. And
            # the Runtime is left first: it can be asked until all that ran after a Ctrl-C has come
            # to its end and is told, and nobody else begins meanwhile.
            with alone_in(self._place):
                async with ControlServer(self._place.folder) as control, self._rt as rt:
                    await self._begin(rt)
                    async with journal.ends_the_block():
                        await self._carry_out(rt, control)
                    unsubmitted = rt.unsubmitted
        except KeyboardInterrupt:
            code = Exit.INTERRUPTED
        except SystemExit as signalled:
            code = int(signalled.code or 0)
        except FatalError:
            code = Exit.FAILED
        except InterlockError:
            # Whoever noticed it first: without its journal nobody can tell how far the run came.
            try:
                journal.check()
            except JournalVanished:
                self._watcher.give_up()
                raise
            raise
        self._interrupted = code is not None and code != Exit.FAILED
        facts = self.facts()
        if code is None:
            brought = [task for task in facts.tasks if task.id not in unsubmitted]
            code = _exit_code(brought, self._deadline)
        return Ended(code, facts, unsubmitted)

    def show_the_end(self) -> None:
        """Outside of the event loop: it may take long until somebody reads it."""
        self._watcher.end(hurry=self._interrupted)

    async def _begin(self, rt: Runtime) -> None:
        with self._place.reader() as reader:
            run = reader.run(rt.run_id)
            self._fold = RunFold(run.id, run.started_at, plan=self._request.title)
            self._fold.take(reader.all_events(run))
            before = from_record(reader.record(NAMESPACE, run.id))
        rt.listen(self._heard)
        asked = self._request
        if before is not None:
            # To go on with a part of a run is not to give up the rest of it.
            asked = replace(asked, only=before.only)
        await rt.records(NAMESPACE).put(rt.run_id, asked.as_record())

    def _heard(self, event: Event) -> None:
        if event.number > self._fold.last:
            self._fold.take((event,))
            self._watcher.event(event)

    async def _carry_out(self, rt: Runtime, control: ControlServer) -> None:
        tasks = rt.tasks_from(self._plan)
        steering = Steering(rt, self._fold, tasks)
        tasks += steering.taken_up()
        await control.answer_with(steering.answer)
        self._watcher.begin(self)
        try:
            await rt.run(tasks, fail_fast=self._fail_fast, deadline=self._deadline)
            await steering.follow_ups()
        except ShuttingDown:
            pass  # somebody asked for it, and it is being done
        except UsageError:
            self._watcher.give_up()  # nothing was begun: the error says all there is to say
            raise


def _exit_code(tasks: Sequence[TaskFacts], deadline: float | None) -> Exit:
    states = {task.state for task in tasks}
    if not all(state.is_end for state in states):
        return Exit.INTERRUPTED
    if states <= {State.SUCCEEDED}:
        return Exit.SUCCEEDED
    if State.CONFLICTED in states:
        return Exit.CONFLICTED
    late = any(task.state is State.TIMED_OUT and "all of them" in task.cause for task in tasks)
    return Exit.DEADLINE if deadline is not None and late else Exit.FAILED


@contextlib.contextmanager
def logging_to(place: Place) -> Iterator[None]:
    """Keep the structured log of what is run inside of the block."""
    handler = logging.handlers.RotatingFileHandler(
        place.log, maxBytes=_LOG_SIZE, backupCount=2, encoding="utf-8", delay=True
    )
    handler.setFormatter(TextFormatter())
    before = LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        handler.close()
        LOGGER.level, LOGGER.propagate = before


def carry_out(coordinator: Coordinator, place: Place) -> Ended:
    """The same for callers without an event loop."""
    try:
        with logging_to(place):
            return asyncio.run(coordinator.run())
    except* UsageError as problems:
        raise problems.exceptions[0] from None
    finally:
        coordinator.show_the_end()

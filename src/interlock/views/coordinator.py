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
from interlock.runtime.log import LOGGER, TextFormatter
from interlock.runtime.runtime import Runtime
from interlock.views.control import ControlServer
from interlock.views.exits import Exit
from interlock.views.facts import RunFacts, TaskFacts
from interlock.views.fold import RunFold
from interlock.views.place import Place
from interlock.views.request import NAMESPACE, Request, from_record
from interlock.views.steering import Steering

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

    def end(self) -> None: ...

    def give_up(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, for its caller."""

    code: int
    facts: RunFacts
    left_over: tuple[str, ...]
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
            changed="rerun",
            max_parallel=request.max_parallel or plan.max_parallel,
        )
        self._fold = RunFold("", 0.0)

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
        left_over: tuple[str, ...] = ()
        try:
            # The Runtime is left first: it is watched, and can be asked, until all that ran after
            # a Ctrl-C has come to its end and is told.
            async with contextlib.AsyncExitStack() as watched, self._rt as rt:
                await self._begin(rt)
                await self._carry_out(rt, watched)
                left_over = rt.left_over
        except KeyboardInterrupt:
            code = Exit.INTERRUPTED
        except SystemExit as signalled:
            code = int(signalled.code or 0)
        except FatalError:
            code = Exit.FAILED
        facts = self.facts()
        if code is None:
            brought = [task for task in facts.tasks if task.id not in left_over]
            code = _exit_code(brought, self._deadline)
        return Ended(code, facts, left_over)

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

    async def _carry_out(self, rt: Runtime, watched: contextlib.AsyncExitStack) -> None:
        tasks = rt.planned(self._plan)
        steering = Steering(rt, self._fold, tasks)
        tasks += steering.taken_up()
        await watched.enter_async_context(ControlServer(self._place.folder, steering.answer))
        watched.callback(self._watcher.end)
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
    with logging_to(place):
        try:
            return asyncio.run(coordinator.run())
        except* UsageError as problems:
            raise problems.exceptions[0] from None

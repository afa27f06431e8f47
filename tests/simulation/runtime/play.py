"""Plays a story: the real Runtime, used through its public API alone, on the virtual loop."""

from __future__ import annotations

import asyncio
import atexit
import logging
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from interlock.errors import AttemptsStillAlive, FatalError, TaskFailed, UnknownTask, UsageError
from interlock.model.event import Event, Kind
from interlock.model.task import Task
from interlock.runtime.context import TaskContext
from interlock.runtime.handle import Handle
from interlock.runtime.log import LOGGER
from interlock.runtime.orphans import orphans_in
from interlock.runtime.runtime import Runtime
from interlock.testing.simulated_ports import simulated_ports
from interlock.testing.simulated_task import SimulatedTask
from interlock.testing.site import NEVER
from interlock.testing.virtual_loop import Fault, Hung, VirtualLoop
from interlock.testing.virtual_run import VirtualRun, simulate
from tests.simulation.runtime.acts import Acts
from tests.simulation.runtime.agents import StoryAgents
from tests.simulation.runtime.record import LimitChange, RunRecord, WatchedJournal
from tests.simulation.runtime.story import RunPlan, RunStory

MOST_STEPS = 30_000
MOST_NAMES = 12
"""How often a child may run again because an ancestor does."""
LONGEST = 100_000.0
"""Virtual seconds; a story that takes longer hangs."""

_FOLDER = tempfile.TemporaryDirectory(prefix="interlock-")
"""A workspace with nothing in it: simulated agents touch no real file."""
atexit.register(_FOLDER.cleanup)


class Play:
    """One story, played once."""

    def __init__(self, story: RunStory, faults: Sequence[Fault] = ()) -> None:
        self.story = story
        self.record = RunRecord(story.journal_takes)
        self.handles: dict[str, Handle[Any]] = {}
        self.plans: dict[str, RunPlan] = {}
        self.runtime: Runtime | None = None
        self.result: VirtualRun[None] | None = None
        self.hung: Hung | None = None
        self._agents = StoryAgents(self)
        self._acts = Acts(self)
        self._faults = [*faults, *([_Strike(self)] if story.strikes_at else [])]
        self._callers: list[asyncio.Task[None]] = []
        self._follower: asyncio.Task[None] | None = None

    def run(self) -> Play:
        """Play it from its start to its end."""
        try:
            with _silence():
                self.result = simulate(
                    self.main,
                    seed=self.story.seed,
                    max_steps=MOST_STEPS,
                    deadline=LONGEST,
                    faults=self._faults,
                )
        except Hung as hung:
            self.hung = hung
        for orphan, _ in orphans_in(self._runtime(0)._workspace.root):
            orphan.release()  # their loop is gone: what hangs in it holds nothing any more
        return self

    async def main(self) -> None:
        """The user: enters a Runtime, does what the story says, and leaves."""
        host = asyncio.create_task(self._first_run(), name="host")
        loop = asyncio.get_running_loop()
        for act in self.story.acts:
            if act.kind == "cancel the user":
                loop.call_at(act.at, self._cancel, host)
        await asyncio.wait([host])
        self.record.left = self.record.site.now()
        if not host.cancelled():
            self.record.block = host.exception()
        else:
            self.record.block = asyncio.CancelledError()
        others = [*self._callers, *([self._follower] if self._follower else [])]
        if others:
            await asyncio.wait(others)
            for each in others:
                each.cancelled() or each.exception()  # of a fault in its first step: it is known
        if isinstance(self.record.block, AttemptsStillAlive) and self.story.then:
            await self._second_run()

    def _cancel(self, host: asyncio.Task[None]) -> None:
        if host.cancel():
            self.record.cancelled_host += 1

    def _runtime(self, number: int) -> Runtime:
        story = self.story
        return Runtime(
            story.slots,
            _FOLDER.name,
            capacity=story.capacity,
            limits=story.limits,
            grace=story.grace,
            ports=simulated_ports(
                story.seed + number, lambda: WatchedJournal(self.record, story.journal_takes)
            ),
        )

    async def _first_run(self) -> None:
        record, story = self.record, self.story
        record.runs = 1
        now = record.site.now()
        record.limits = [LimitChange(now, "slots", story.slots)]
        record.limits += [LimitChange(now, name, amount) for name, amount in story.capacity.items()]
        async with self._runtime(0) as runtime:
            self.runtime = runtime
            try:
                self._watch(runtime)
                for act in story.acts:
                    if act.kind != "cancel the user":
                        wait = act.at - asyncio.get_running_loop().time()
                        if wait > 0:  # Acts at the same time are done in one step.
                            await asyncio.sleep(wait)
                        self._acts.perform(runtime, act)
                if story.leaves == "last" and self._callers:
                    await asyncio.wait(self._callers)
            finally:
                record.begins = record.site.now()

    def _watch(self, runtime: Runtime) -> None:
        if self.story.bad_listener:
            runtime.listen(_stumble)
        runtime.listen(self.record.heard.append)
        runtime.listen(lambda event: self._person(runtime, event))
        self._follower = asyncio.create_task(self._follow(runtime), name="follower")

    async def _follow(self, runtime: Runtime) -> None:
        async for event in runtime.events():
            self.record.followed.append(event)
            if len(self.record.followed) > MOST_STEPS:
                break  # It would go on for ever, without a step that could be counted.

    def _person(self, runtime: Runtime, event: Event) -> None:
        if event.kind is Kind.NEEDS_YOU:
            loop = asyncio.get_running_loop()
            loop.call_later(self.story.answers_after, self._answer, runtime, event.task_id)

    def _answer(self, runtime: Runtime, task_id: str) -> None:
        try:
            runtime.answer(task_id, f"yes, {task_id}")
        except UsageError as error:  # it has lost patience, or its attempt is over
            self.record.seen[f"answer: {type(error).__name__}"] += 1

    async def _second_run(self) -> None:
        """A second run, which may not get what attempts of the first still hold."""
        self.record.runs = 2
        self.record.seen["second run"] += 1
        self.record.limits.append(LimitChange(self.record.site.now(), "slots", 10**6))
        try:
            async with self._runtime(1) as runtime:
                self.runtime = runtime
                for plan in self.story.then:
                    self.submit(runtime, plan)
        except AttemptsStillAlive:
            self.record.seen["second run: AttemptsStillAlive"] += 1

    # -- what acts and agents use -----------------------------------------------------------

    def task(self, plan: RunPlan) -> Task:
        """The task of a plan, with its agent and arguments."""
        self.plans.setdefault(plan.task.id, plan)
        args = tuple(self.handles[each] for each in plan.given)
        return plan.task.replace(agent=self._agents.of(plan), args=args)

    def submit(self, where: Runtime | TaskContext, plan: RunPlan) -> Handle[Any]:
        """Submit one plan."""
        task = self.task(plan)
        with self.asking([task], where if isinstance(where, TaskContext) else None):
            handle = where.submit(task)
        self.handles[handle.task_id] = handle
        return handle

    @contextmanager
    def asking(self, tasks: Sequence[Task], parent: TaskContext | None = None) -> Iterator[None]:
        """Record tasks that are about to be submitted; if they are rejected, forget them."""
        fresh = [task for task in tasks if task.id not in self.record.asked]
        for task in tasks if parent is not None else ():
            # A child that an earlier attempt submitted in vain runs again, under a new name.
            if task.id in self.record.asked:
                names = [f"{task.id}~{number}" for number in range(2, MOST_NAMES)]
                again = [task.replace(id=name, after=()) for name in names]
                fresh += [each for each in again if each.id not in self.record.asked]
        for task in fresh:
            self.record.ask(task)
            if parent is not None:
                self.record.site.parents[task.id] = parent.task.id
        try:
            yield
        finally:
            for task in fresh:
                if not self._is_known(task.id):
                    del self.record.asked[task.id]

    def _is_known(self, task_id: str) -> bool:
        assert self.runtime is not None
        try:
            self.runtime.handle(task_id)
        except UnknownTask:
            return False
        return True

    def call(self, wait: Callable[[], Awaitable[None]], name: str) -> None:
        """Wait for something in a task of its own, as other code of the user would."""
        self._callers.append(asyncio.create_task(self._caller(wait), name=name))

    async def _caller(self, wait: Callable[[], Awaitable[None]]) -> None:
        seen = self.record.seen
        try:
            await wait()
        except TimeoutError:
            seen["caller lost patience"] += 1
        except (TaskFailed, FatalError, AttemptsStillAlive, UsageError) as error:
            seen[f"caller got {type(error).__name__}"] += 1
        except Exception as error:  # noqa: BLE001 - any other error is a finding
            self.record.oddities.append(f"{asyncio.current_task()!r} got {error!r}")

    @property
    def ended_well(self) -> bool:
        """Whether the user got to the end of its story."""
        return self.hung is None and self.record.left is not NEVER


class _Strike:
    """Cancels one task of an agent, as a careless library might."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def before_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        due = loop.steps >= self._play.story.strikes_at and not self._play.record.seen["struck"]
        if due and task.get_name().startswith("task-t"):
            self._play.record.seen["struck"] += 1
            task.cancel()

    def after_step(self, loop: VirtualLoop, task: SimulatedTask[Any]) -> None:
        """Do nothing: a cancellation comes before the step."""


@contextmanager
def _silence() -> Iterator[None]:
    """Silence the log: whatever is in it is also in the record."""
    quiet = logging.NullHandler()
    LOGGER.addHandler(quiet)
    LOGGER.propagate, before = False, LOGGER.propagate
    try:
        yield
    finally:
        LOGGER.propagate = before
        LOGGER.removeHandler(quiet)


def _stumble(event: Event) -> None:
    raise ValueError(f"a listener that fails at event {event.number}")

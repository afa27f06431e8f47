"""What the user of a story does, act by act."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from interlock.errors import UsageError
from interlock.model.claim import Claim
from interlock.model.task import Task
from interlock.runtime.handle import Handle
from interlock.runtime.runtime import Runtime
from tests.simulation.runtime.record import LimitChange
from tests.simulation.runtime.story import Act

if TYPE_CHECKING:
    from tests.simulation.runtime.play import Play


class Boom(Exception):
    """Raised by the user of a story in the block."""


class Acts:
    """Performs acts on a Runtime. Waits go on in tasks of their own."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._record = play.record

    def perform(self, runtime: Runtime, act: Act) -> None:
        """Perform an act; count it if the Runtime rejects it."""
        self._record.seen[f"act: {act.kind}"] += 1
        try:
            getattr(self, "_" + act.kind.replace(" ", "_"))(runtime, act)
        except UsageError as error:
            self._record.seen[f"{act.kind}: {type(error).__name__}"] += 1

    def _submit(self, runtime: Runtime, act: Act) -> None:
        for plan in act.plans:
            if all(each in self._play.handles for each in plan.given):
                self._play.submit(runtime, plan)

    def _run(self, runtime: Runtime, act: Act) -> None:
        tasks = [self._play.task(plan) for plan in act.plans]

        async def wait() -> None:
            asked = self._record.site.now()
            with self._play.asking(tasks), self._abandoning(tasks):
                async with asyncio.timeout(act.patience):
                    result = await runtime.run(
                        tasks, fail_fast=act.fail_fast, deadline=act.deadline
                    )
            for outcome in result.outcomes:
                self._record.tell(outcome, asked)

        self._play.call(wait, f"runs {act.plans[0].task.id}")

    @contextmanager
    def _abandoning(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Record that the only caller has stopped waiting for these tasks."""
        try:
            yield
        except TimeoutError:
            now = self._record.site.now()
            self._record.abandoned += [(task.id, now) for task in tasks]
            raise

    def _map(self, runtime: Runtime, act: Act) -> None:
        plan = act.plans[0]
        agent, task, items = self._play.task(plan).agent, plan.task, list(range(act.amount))
        tasks = []
        for item in items:
            claims = tuple(_filled(claim, item) for claim in task.claims)
            tasks.append(task.replace(id=f"{task.id}-{item}", claims=claims))

        async def wait() -> None:
            asked = self._record.site.now()
            with self._play.asking(tasks), self._abandoning(tasks):
                async with asyncio.timeout(act.patience):
                    outcomes = await runtime.map(
                        agent,
                        items,
                        id=f"{task.id}-{{item}}",
                        claims=task.claims,
                        retry=task.retry,
                        timeout=task.timeout,
                    )
            for item, outcome in zip(items, outcomes, strict=True):
                if outcome.task_id != f"{task.id}-{item}":
                    self._record.oddities.append(f"map: {outcome.task_id} came as number {item}")
                self._record.tell(outcome, asked)

        self._play.call(wait, f"maps {task.id}")

    def _await(self, runtime: Runtime, act: Act) -> None:
        handle = self._play.handles.get(act.task_id)
        if handle is not None:
            self._play.call(lambda: self._outcome(handle, act), f"awaits {act.task_id}")

    async def _outcome(self, handle: Handle[Any], act: Act) -> None:
        asked = self._record.site.now()
        async with asyncio.timeout(act.patience):
            if act.name == "result":
                try:
                    await handle.result()
                finally:
                    if handle.outcome is not None:
                        self._record.tell(handle.outcome, asked, alone=True)
            else:
                self._record.tell(await handle, asked, alone=True)

    def _cancel(self, runtime: Runtime, act: Act) -> None:
        runtime.cancel(act.task_id)

    def _pause(self, runtime: Runtime, act: Act) -> None:
        runtime.pause(act.task_id or None)

    def _resume(self, runtime: Runtime, act: Act) -> None:
        runtime.resume(act.task_id or None)

    def _prioritize(self, runtime: Runtime, act: Act) -> None:
        runtime.prioritize(act.task_id, act.amount)

    def _set_capacity(self, runtime: Runtime, act: Act) -> None:
        runtime.set_capacity(act.name, act.amount)
        self._record.limits.append(LimitChange(self._record.site.now(), act.name, act.amount))

    def _hold_rate(self, runtime: Runtime, act: Act) -> None:
        runtime.hold_rate("openai", float(act.amount))

    def _look(self, runtime: Runtime, act: Act) -> None:
        progress = runtime.progress()
        for task_id in self._play.handles:
            str(runtime.why(task_id))
        known = [each for each in self._record.asked.values() if each.run == 1]
        if progress.total > len(known):
            self._record.oddities.append(f"{progress.total} tasks in progress of {len(known)}")

    def _same_key(self, runtime: Runtime, act: Act) -> None:
        """The same key twice is one task."""
        plan = act.plans[0]
        first = self._play.submit(runtime, plan)
        again = runtime.submit(self._play.task(plan).replace(id=f"{plan.task.id}-again"))
        if again is not first:
            self._record.oddities.append(f"{plan.task.id}: one key, two tasks")

    def _bad_input(self, runtime: Runtime, act: Act) -> None:
        runtime.submit(act.plans[0].task.replace(agent=_idle, after="unknown"))

    def _shutdown(self, runtime: Runtime, act: Act) -> None:
        def wait() -> Awaitable[None]:
            return runtime.shutdown(grace=float(act.amount))

        self._play.call(wait, "shuts down")

    def _raise(self, runtime: Runtime, act: Act) -> None:
        raise Boom


async def _idle() -> None:
    """An agent that is never called."""


def _filled(claim: Claim, item: int) -> Claim:
    return Claim(claim.resource.replace("{item}", str(item)), claim.mode, claim.amount)

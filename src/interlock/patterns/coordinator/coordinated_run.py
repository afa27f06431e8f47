"""The calls that share one run: the ids of their tasks, and who is told what happens."""

from __future__ import annotations

import asyncio
from collections import deque

from interlock.errors import FatalError, UnknownTask
from interlock.model.event import Event, Kind
from interlock.model.task import Task
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.subtask_agent import ATTEMPT
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion

RECORDS = "parallel attempts"
"""Where a journal keeps the records of groups: `runtime.records(RECORDS)`."""


class CoordinatedRun:
    """Belongs to the thread of the Runtime's event loop, but for its making."""

    def __init__(self, runtime: Runtime, records_kept: int | None) -> None:
        self.runtime = runtime
        self._records_kept = records_kept
        """None: all of them, as in a journal."""
        self._records: deque[str] = deque()
        self._ids: set[str] = set()
        """Ids of tasks that this run has seen: its journal wants each of them once."""
        self._counts: dict[str, int] = {}
        """How often each of them was wanted, so that nobody counts up from the first one again."""
        self._calls: dict[str, CoordinatedCall] = {}
        """Those that are not over, by the ids of their tasks."""
        runtime.listen(self._heard)

    def _heard(self, event: Event) -> None:
        kind = event.kind
        if kind is Kind.SETTLED:
            if (call := self._calls.get(event.task_id)) is not None:
                call.settled(event.data)
        elif kind is Kind.STARTED or kind is Kind.SUBMITTED:
            call = self._calls.get(event.task_id)
            if call is not None and call.tells_states:
                call.moved(event.task_id, "in_progress" if kind is Kind.STARTED else "pending")

    async def carry_out(self, call: CoordinatedCall) -> None:
        """Run all subtasks of a call to their end. Whoever stops waiting for it cancels it."""
        if call.called_off:
            return
        name = self._name(call)
        tasks = call.tasks(name, self.runtime)
        self._calls.update((task.id, call) for task in tasks)
        try:
            await self._run(tasks, call)
            await self._keep(name, call)
        except asyncio.CancelledError:
            await shielded_to_completion(self._end(name, call))
            raise
        finally:
            for task in tasks:
                del self._calls[task.id]

    async def _run(self, tasks: list[Task], call: CoordinatedCall) -> None:
        try:
            outcomes = (await self.runtime.run(tasks, deadline=call.settings.deadline)).outcomes
        except FatalError as error:
            LOGGER.error("coordinator_agent_fatal", exc_info=error)
            outcomes = error.outcomes
        if not call.is_over:  # what an earlier run had done is not an event of this one
            for outcome in outcomes:
                call.settled(outcome)

    async def _end(self, name: str, call: CoordinatedCall) -> None:
        """Its caller is gone, and it was cancelled: see to it that everything is told."""
        for outcome in await self.runtime.wait_all(call.open_ids):
            call.settled(outcome)
        await self._keep(name, call)

    async def _keep(self, name: str, call: CoordinatedCall) -> None:
        kept = self.runtime.records(RECORDS)
        for number, record in enumerate(call.records, 1):
            key = f"{self.runtime.run_id}/{name}/{number}"
            await kept.put(key, record)
            if self._records_kept is not None:
                self._records.append(key)
                if len(self._records) > self._records_kept:
                    await kept.delete(self._records.popleft())

    def cancel(self, reason: str) -> None:
        """End all calls; their results say so."""
        for call in dict.fromkeys(self._calls.values()):
            self.cancel_call(call, reason)

    def cancel_call(self, call: CoordinatedCall, reason: str) -> None:
        """End one call, or have it not begin."""
        call.called_off = True
        if call in self._calls.values():
            call.cancel(self.runtime, reason)

    def _name(self, call: CoordinatedCall) -> str:
        """A name for a call that this run has not seen yet."""
        first = "task" if call.parent_id is None else str(call.parent_id).strip() or "task"
        wanted = call.ids(first)
        count = max(self._counts.get(each, 0) for each in wanted)
        while True:
            count += 1
            name = first if count == 1 else f"{first}~{count}"
            ids = call.ids(name)
            if self._ids.isdisjoint(ids) and not any(map(self._is_of_an_attempt, ids)):
                self._counts.update(dict.fromkeys(wanted, count))
                self._ids.update(ids)
                return name

    def _is_of_an_attempt(self, task_id: str) -> bool:
        """Whether it is the id of an agent that works for an attempt at a subtask."""
        if ATTEMPT not in task_id:
            return False
        try:
            self.runtime.handle(task_id)
        except UnknownTask:
            return False
        return True

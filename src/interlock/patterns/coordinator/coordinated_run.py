"""The calls that share one run: the ids of their tasks, their events and their records."""

from __future__ import annotations

import asyncio
from collections import deque

from interlock.errors import FatalError
from interlock.model.event import Event, Kind
from interlock.model.task import Task
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.runtime.log import LOGGER
from interlock.runtime.runtime import Runtime
from interlock.runtime.shielded import shielded_to_completion

RECORDS = "parallel attempts"
"""The namespace of the records of groups: `runtime.records(RECORDS)`."""


class CoordinatedRun:
    """A Runtime and the calls in it. Used on the thread of the event loop only."""

    def __init__(self, runtime: Runtime, max_records: int | None) -> None:
        self.runtime = runtime
        self._max_records = max_records
        """None keeps all of them, as in a journal."""
        self._records: deque[str] = deque()
        self._calls: dict[str, CoordinatedCall] = {}
        """Unfinished calls, by the ids of their tasks."""
        runtime.listen(self._on_event)

    def _on_event(self, event: Event) -> None:
        kind = event.kind
        if kind is Kind.SETTLED:
            if (call := self._calls.get(event.task_id)) is not None:
                call.record_outcome(event.data)
        elif kind is Kind.STARTED or kind is Kind.SUBMITTED:
            call = self._calls.get(event.task_id)
            if call is not None and call.reports_states:
                state = "in_progress" if kind is Kind.STARTED else "pending"
                call.record_state(event.task_id, state)

    async def execute(self, call: CoordinatedCall) -> None:
        """Run all subtasks of a call to their end. Cancelling this cancels them."""
        if call.is_cancelled:
            return
        parent = "task" if call.parent_id is None else str(call.parent_id).strip() or "task"
        name = self.runtime.fresh_id(parent, ids=call.ids)
        tasks = call.tasks(name, self.runtime)
        self._calls.update((task.id, call) for task in tasks)
        try:
            await self._run(tasks, call)
            await self._store_records(name, call)
        except asyncio.CancelledError:
            await shielded_to_completion(self._finish(name, call))
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
        if not call.is_complete:  # reused outcomes of an earlier run are not events
            for outcome in outcomes:
                call.record_outcome(outcome)

    async def _finish(self, name: str, call: CoordinatedCall) -> None:
        """Record everything about a call whose caller was cancelled."""
        for outcome in await self.runtime.wait_all(call.open_ids):
            call.record_outcome(outcome)
        await self._store_records(name, call)

    async def _store_records(self, name: str, call: CoordinatedCall) -> None:
        records = self.runtime.records(RECORDS)
        for number, record in enumerate(call.records, 1):
            key = f"{self.runtime.run_id}/{name}/{number}"
            await records.put(key, record)
            if self._max_records is not None:
                self._records.append(key)
                if len(self._records) > self._max_records:
                    await records.delete(self._records.popleft())

    def cancel(self, reason: str) -> None:
        """Cancel all calls; their results say so."""
        for call in dict.fromkeys(self._calls.values()):
            self.cancel_call(call, reason)

    def cancel_call(self, call: CoordinatedCall, reason: str) -> None:
        """Cancel one call, or keep it from starting."""
        call.is_cancelled = True
        if call in self._calls.values():
            call.cancel(self.runtime, reason)

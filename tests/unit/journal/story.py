"""Events of made-up runs, and what to do with journals in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from interlock.journal.sqlite import SqliteJournal
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.model.event import Event, Kind
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.runtime.recorded_types import RECORDED_TYPES

T = TypeVar("T")
KNOWN = RECORDED_TYPES


AGENT = "app:build"
"""An agent comes back as its name, so here it goes in as one."""


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(main)


async def opened(path: Path, run_id: str = "r1", **options: Any) -> SqliteJournal:
    journal = SqliteJournal(path, known=KNOWN, **options)
    await journal.begin(run_id, 1000.0)
    return journal


class Story:
    """Numbers events, and knows what the life of a task looks like."""

    def __init__(self, first: int = 1) -> None:
        self._next = first
        self.at = 1000.0

    def tell(self, kind: Kind, task_id: str = "", data: Any = None) -> Event:
        event = Event(self._next, self.at, kind, task_id, data)
        self._next += 1
        return event

    def begun(self, task: Task, token: int = 1, attempt: int = 1) -> list[Event]:
        """Submitted, and its first attempt started."""
        return [
            self.tell(Kind.SUBMITTED, task.id, task),
            self.tell(Kind.WAITING, task.id, do.Change(task.id, State.WAITING, "")),
            self.tell(Kind.STARTED, task.id, do.Start(task.id, attempt, token)),
        ]

    def ended(
        self, task_id: str, result: Any = None, status: State = State.SUCCEEDED, token: int = 1
    ) -> list[Event]:
        """The attempt reported, the task has its outcome."""
        error = None if status is State.SUCCEEDED else ErrorRecord("ValueError", "no")
        at = datetime.fromtimestamp(self.at, UTC)
        outcome = Outcome(task_id, status, result, error, 1, at, at, 0.0)
        return [
            self.tell(Kind.ENDED, task_id, s.Ended(task_id, token, status, error)),
            self.tell(Kind.SETTLED, task_id, outcome),
        ]

    def life(self, task: Task, result: Any = None, takes: float = 0.0) -> list[Event]:
        begun = self.begun(task)
        self.at += takes
        return begun + self.ended(task.id, result)

"""What happened in a run: what was submitted, when it was durable, and what callers were told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from interlock.journal.memory import MemoryJournal
from interlock.model.event import Event
from interlock.model.outcome import Outcome
from interlock.model.task import Task
from interlock.testing.site import NEVER, Moment, Site


class AskedTask(NamedTuple):
    """A task as its submitter wrote it."""

    task: Task
    at: Moment
    run: int


class ToldOutcome(NamedTuple):
    """An outcome that a caller got."""

    outcome: Outcome[Any]
    at: Moment
    asked: Moment
    """Since when the caller had been waiting."""
    alone: bool
    """Whether it waited for nothing else."""


class LimitChange(NamedTuple):
    """How much of a resource there was from a moment on."""

    since: Moment
    resource: str
    amount: int


class RateTake(NamedTuple):
    """What was taken from a rate; how much was used is reported later."""

    at: Moment
    rate: str
    amount: int
    used: list[tuple[Moment, int]]


class RunRecord:
    """Filled in while a story is played; the judge reads it afterwards."""

    def __init__(self, journal_takes: float = 0.0) -> None:
        self.site = Site()
        self.journal_takes = journal_takes
        self.asked: dict[str, AskedTask] = {}
        self.told: list[ToldOutcome] = []
        self.limits: list[LimitChange] = []
        self.taken: list[RateTake] = []
        self.events: list[tuple[Moment, Event]] = []
        """What is durable, and since when."""
        self.followed: list[Event] = []
        self.heard: list[Event] = []
        self.seen: Counter[str] = Counter()
        """How often each feature was exercised."""
        self.oddities: list[str] = []
        """What should not have happened, seen while the story was played."""
        self.abandoned: list[tuple[str, Moment]] = []
        """Tasks of a `run` or `map` that its caller has stopped waiting for, and when."""
        self.runs = 0
        self.block: BaseException | None = None
        """What came out of `async with`, if anything."""
        self.begins = NEVER
        """When the block began to end."""
        self.left = NEVER
        self.cancelled_host = 0

    def ask(self, task: Task) -> None:
        """A task is about to be submitted."""
        self.asked[task.id] = AskedTask(task, self.site.now(), self.runs)

    def tell(self, outcome: Outcome[Any], asked: Moment, *, alone: bool = False) -> None:
        """A caller got an outcome."""
        self.told.append(ToldOutcome(outcome, self.site.now(), asked, alone))


class WatchedJournal(MemoryJournal):
    """A journal in memory, perhaps a slow one, that records what became durable when."""

    def __init__(self, record: RunRecord, takes: float) -> None:
        super().__init__()
        self._record = record
        self._takes = takes

    def append(self, events: Sequence[Event]) -> Any:
        if self._takes:
            return self._slowly(events)
        self._keep(events)
        return None

    async def _slowly(self, events: Sequence[Event]) -> None:
        await asyncio.sleep(self._takes)
        self._keep(events)

    def _keep(self, events: Sequence[Event]) -> None:
        super().append(events)
        self._record.events += [(self._record.site.now(), each) for each in events]

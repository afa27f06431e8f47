"""Bugs planted in durable worlds: the judge must find each of them, and say what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

from interlock.journal.batch import Batch
from interlock.journal.state.run_state import RunState
from interlock.journal.state.task_state import TaskState
from interlock.kernel import stimuli as s
from interlock.model.event import Event, Kind
from interlock.model.outcome import State
from interlock.runtime.recovery import known_tasks, open_run
from interlock.runtime.recovery.known_tasks import KnownTasks
from interlock.runtime.shell import Shell
from tests.simulation.loop_writer import LoopWriter

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


class Where(NamedTuple):
    """The scenario in which a bug shows, and what the judge says of it."""

    scenario: str
    says: str
    resume: bool = True


def acknowledged_before_it_is_durable(patch: Patch) -> None:
    async def flush(self: Shell) -> None:
        return

    patch.setattr(Shell, "flush", flush)


def done_before_it_is_durable(patch: Patch) -> None:
    put = LoopWriter.put

    def at_once(self: LoopWriter, batch: Batch) -> asyncio.Future[None]:
        written = put(self, batch)
        if batch.rows:  # events; a run has to have begun
            written = asyncio.get_running_loop().create_future()
            written.set_result(None)
        return written

    patch.setattr(LoopWriter, "put", at_once)


def tokens_that_begin_anew(patch: Patch) -> None:
    take_up = open_run._resume

    async def anew(*args: Any) -> open_run.OpenedRun:
        return (await take_up(*args))._replace(first_token=1)

    patch.setattr(open_run, "_resume", anew)


def _without(patch: Patch, **lost: Any) -> None:
    before = known_tasks.kernel_past

    def forgets(task: TaskState, attempts: int, paused: bool) -> s.Past:
        return before(task, attempts, paused)._replace(**lost)

    patch.setattr(known_tasks, "kernel_past", forgets)


def backoffs_that_are_forgotten(patch: Patch) -> None:
    _without(patch, retry_at=None)


def deadlines_that_begin_anew(patch: Patch) -> None:
    _without(patch, deadline_at=None)


def rates_that_begin_anew(patch: Patch) -> None:
    patch.setattr(RunState, "_spend", lambda self, claims, now: None)


def answers_that_are_forgotten(patch: Patch) -> None:
    patch.setattr(KnownTasks, "answers", lambda self, task_id: [])


def cancels_that_are_forgotten(patch: Patch) -> None:
    fold = known_tasks.fold_run

    def is_cancel(event: Event) -> bool:
        return event.kind is Kind.SETTLED and event.data.status is State.CANCELLED

    def forgets(started_at: float, events: Iterable[Event]) -> RunState:
        return fold(started_at, (each for each in events if not is_cancel(each)))

    patch.setattr(open_run, "fold_run", forgets)


def keys_that_end_with_their_run(patch: Patch) -> None:
    init = KnownTasks.__init__

    def forgets(
        self: KnownTasks, fingerprint: Any, past: Any, inherited: Any, *_: Any, **options: Any
    ) -> None:
        init(self, fingerprint, past, inherited, **options)

    patch.setattr(KnownTasks, "__init__", forgets)


PLANTS: dict[Plant, Where] = {
    acknowledged_before_it_is_durable: Where("a fan out on two files", "and is lost"),
    done_before_it_is_durable: Where("a fan out on two files", "without a durable start"),
    tokens_that_begin_anew: Where("a chain with a retry", "its token is not new"),
    backoffs_that_are_forgotten: Where("a chain with a retry", "s early"),
    deadlines_that_begin_anew: Where("children and a deadline", "s late"),
    rates_that_begin_anew: Where("a rate and a question", "3 of them in"),
    answers_that_are_forgotten: Where("a rate and a question", "answered before"),
    cancels_that_are_forgotten: Where("keys and a cancel", "although it was"),
    keys_that_end_with_their_run: Where("keys and a cancel", "had succeeded", resume=False),
}

"""Replay: a fresh kernel, given what a journal says happened, must decide what it says was decided.

A journal has what happened and what was decided, in order. Each thing that happened is given to a
new kernel (one for each coordinator that the run had), and its decisions are compared with the
recorded ones. A difference means that the kernel is not a function of its stimuli, that something
reached the kernel without being recorded, or that the file has been changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from interlock.errors import InterlockError
from interlock.journal.reader import Reader
from interlock.journal.schema.codec import Codec
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.kernel.kernel import Kernel
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome
from interlock.runtime.recorded_types import RECORDED_TYPES
from interlock.runtime.turn import SubmissionTerms

_REPORTS = (Kind.ENDED, Kind.ATTEMPT_EXITED)
_DECISIONS = frozenset(
    {
        *(Kind.BLOCKED, Kind.WAITING, Kind.RETRYING, Kind.NEEDS_YOU, Kind.RUNNING),
        *(Kind.STARTED, Kind.STOP_REQUESTED, Kind.SETTLED),
        *(Kind.GRANTED, Kind.DENIED, Kind.REFUSED),
    }
)
_ROUNDING = 1e-6
"""In seconds: times in a journal count from 1970 and have lost their last digits."""


class Difference(NamedTuple):
    """The first event at which a replay and the journal differ."""

    run: str
    number: int
    """The number of the event that the kernel was given."""
    stimulus: Any
    recorded: list[Any]
    replayed: list[Any]

    def __str__(self) -> str:
        lines = [f"run {self.run}, event {self.number}: {self.stimulus!r}"]
        lines += [f"  recorded {each!r}" for each in self.recorded if each not in self.replayed]
        lines += [f"  replayed {each!r}" for each in self.replayed if each not in self.recorded]
        return "\n".join(lines if len(lines) > 1 else [*lines, "  the order differs"])


class _RecordedStep(NamedTuple):
    """One thing that happened, and what was decided on it."""

    number: int
    at: float
    stimulus: s.Stimulus
    decided: list[Any]


def replay(path: str | Path) -> list[Difference]:
    """Replay all runs of a journal; returns the first difference of each run that has one."""
    found = []
    with Reader(path, Codec(RECORDED_TYPES)) as reader:
        for run in reader.runs():
            found += replay_run(run.id, reader.all_events(run))
    return found


def replay_run(run_id: str, events: Iterable[Event]) -> list[Difference]:
    """Replay one run; returns its first difference, or an empty list."""
    kernel: Kernel | None = None
    epoch = 0.0
    for each in _steps(events):
        if isinstance(each, Event):  # a coordinator began
            kernel, epoch = Kernel(**each.data["kernel"]), each.data["epoch"]
            continue
        if kernel is None:
            return []  # not written by a Runtime
        try:
            made = _replayed(kernel, each.stimulus, each.at - epoch)
        except InterlockError as error:
            made = [error]
        if made != each.decided:
            return [Difference(run_id, each.number, each.stimulus, each.decided, made)]
    return []


def _replayed(kernel: Kernel, stimulus: s.Stimulus, now: float) -> list[Any]:
    run = kernel._run
    now = max(now, run.now)
    if isinstance(stimulus, s.Tick):
        upcoming = run.timers.next()
        if upcoming is not None and now < upcoming < now + _ROUNDING:
            now = upcoming
    found = kernel.handle(stimulus, now)
    return [_comparable(each) for each in found if not isinstance(each, do.SetTimer)]


# -- the journal, as steps ------------------------------------------------------------------


def _steps(events: Iterable[Event]) -> Iterator[Event | _RecordedStep]:
    """What the kernels of a run were given, and what each decided on it."""
    step: _RecordedStep | None = None
    terms: SubmissionTerms | None = None
    queue = _EventQueue(events)
    for event in queue:
        if event.kind in _DECISIONS:
            if step is not None:  # before the first one, a run is being resumed
                step.decided.append(_comparable(event.data))
            continue
        if event.kind is Kind.COMMAND and isinstance(event.data, SubmissionTerms):
            terms = event.data
            continue
        stimulus = _stimulus(event, terms, queue)
        if event.kind is Kind.SUBMITTED:
            terms = None
        if event.kind is Kind.RUN_STARTED and "kernel" in event.fields:
            yield from () if step is None else (step,)
            step = None
            yield event
        elif stimulus is not None:
            yield from () if step is None else (step,)
            step = _RecordedStep(event.number, event.at, stimulus, [])
    if step is not None:
        yield step


def _stimulus(event: Event, terms: SubmissionTerms | None, queue: _EventQueue) -> s.Stimulus | None:
    """The stimulus that an event stands for, with the events that belong to it; None if none."""
    if event.kind is Kind.SUBMITTED:
        if queue.next_is(Kind.REUSED):
            return None
        size = 1 if terms is None else terms.size
        tasks = (event.data, *(queue.take().data for _ in range(size - 1)))
        return s.Submit(tasks) if terms is None else s.Submit(tasks, *terms[1:])
    if event.kind in _REPORTS:
        reports = [event.data]
        while queue.next_is(*_REPORTS) and queue.next_at() == event.at:
            reports.append(queue.take().data)
        return s.Reports(tuple(reports))
    if event.kind is Kind.TICKED:
        return s.Tick()
    if event.kind is Kind.COMMAND:
        asked: s.Stimulus = event.data
        return asked
    return None


class _EventQueue:
    """Events, with a look at the next one."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = iter(events)
        self._next = next(self._events, None)

    def __iter__(self) -> Iterator[Event]:
        while self._next is not None:
            yield self.take()

    def take(self) -> Event:
        taken, self._next = self._next, next(self._events, None)
        assert taken is not None, "the journal ends in the middle of a turn"
        return taken

    def next_is(self, *kinds: Kind) -> bool:
        return self._next is not None and self._next.kind in kinds

    def next_at(self) -> float:
        return math.nan if self._next is None else self._next.at


def _comparable(decision: Any) -> Any:
    """A decision without what the runtime adds to it, and without exact times."""
    if isinstance(decision, Outcome | do.Settle):
        return (
            "settled",
            decision.task_id,
            decision.status,
            decision.attempts,
            decision.error,
            decision.cause,
            decision.ended_by,
        )
    if isinstance(decision, do.Change):
        return decision._replace(until=None if decision.until is None else round(decision.until, 2))
    return decision

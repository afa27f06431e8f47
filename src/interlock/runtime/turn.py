"""The events of one turn of the loop, which are journaled in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome

Decision = do.Instruction | Outcome[Any]
"""An instruction of the kernel. In place of `Settle` there is the outcome itself."""

_KINDS: dict[type, Kind] = {
    do.Start: Kind.STARTED,
    do.Stop: Kind.STOP_REQUESTED,
    do.Resume: Kind.GRANTED,
    do.Deny: Kind.DENIED,
    do.Refused: Kind.REFUSED,
    Outcome: Kind.SETTLED,
    s.Ended: Kind.ENDED,
    s.Gone: Kind.ATTEMPT_EXITED,
}


class Turn(Sequence[Event]):
    """The events of one turn.

    Event objects are made when the turn is read. Without a journal on disk, listeners or a log,
    most turns never are.
    """

    __slots__ = ("_epoch", "_events", "_first", "_length", "_parts")

    def __init__(self, first: int, epoch: float) -> None:
        self._first = first
        self._epoch = epoch
        self._length = 0
        self._parts: list[tuple[float, Any, Sequence[Decision]]] = []
        self._events: list[Event] | None = None

    def decided(self, now: float, stimulus: s.Stimulus, decisions: Sequence[Decision]) -> None:
        """Add a stimulus and the decisions that the kernel made on it."""
        self._parts.append((now, stimulus, decisions))
        # Counted here, without making the events: the numbers of later events depend on it.
        if isinstance(stimulus, s.Submit):
            self._length += len(stimulus.tasks) + (_terms(stimulus) is not None)
        elif isinstance(stimulus, s.Reports):
            self._length += len(stimulus.reports)
        else:
            self._length += 1
        self._length += len(decisions)
        if decisions and isinstance(decisions[-1], do.SetTimer):
            self._length -= 1  # not an event; always the last instruction

    def told(self, now: float, kind: Kind, task_id: str, data: Any) -> None:
        """Add an event that the kernel need not know."""
        self._parts.append((now, (kind, task_id, data), ()))
        self._length += 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Event]:
        return iter(self._made())

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        return self._made()[index]

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._first + self._length - 1

    def _made(self) -> list[Event]:
        if self._events is None:
            self._events = list(self._make())
            assert len(self._events) == self._length, "events were miscounted"
        return self._events

    def _make(self) -> Iterator[Event]:
        number = self._first
        for now, source, decisions in self._parts:
            at = self._epoch + now
            for kind, task_id, data in _told(source):
                yield Event(number, at, kind, task_id, data)
                number += 1
            for each in decisions:
                if isinstance(each, do.SetTimer):
                    continue
                kind = Kind(each.state) if isinstance(each, do.Change) else _KINDS[type(each)]
                yield Event(number, at, kind, each.task_id, each)
                number += 1


def _told(source: Any) -> Iterator[tuple[Kind, str, Any]]:
    if isinstance(source, s.Submit):
        terms = _terms(source)
        if terms is not None:
            yield Kind.COMMAND, terms.parent or "", terms
        # After the terms: a fold applies them to the next `size` submissions.
        for task in source.tasks:
            yield Kind.SUBMITTED, task.id, task
    elif isinstance(source, s.Reports):
        for report in source.reports:
            yield _KINDS[type(report)], report.task_id, report
    elif isinstance(source, s.Tick):
        yield Kind.TICKED, "", source
    elif type(source) is tuple:
        yield source
    else:
        yield Kind.COMMAND, getattr(source, "task_id", "") or "", source


class SubmissionTerms(NamedTuple):
    """The terms on which the next `size` tasks were submitted together."""

    size: int
    group: str
    fail_fast: bool
    deadline: float | None
    parent: str | None
    token: int
    past: tuple[s.Past | None, ...]


def _terms(stimulus: s.Submit) -> SubmissionTerms | None:
    """None for a single task on no special terms."""
    terms = SubmissionTerms(len(stimulus.tasks), *stimulus[1:])
    return None if terms == _DEFAULT_TERMS else terms


_DEFAULT_TERMS = SubmissionTerms(1, *s.Submit(())[1:])

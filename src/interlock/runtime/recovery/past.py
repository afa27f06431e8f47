"""The past of a run, folded from its journal: what ended, what was cut off, what is left to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.journal.schema.own_records import NotStored
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.model.claim import Claim
from interlock.model.event import Event, Kind
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.model.usage import NO_USAGE, Usage
from interlock.runtime.turn import Together

CUT_OFF_AT_MOST = 3
"""How often an attempt at one task may be cut off before it is given up: it may be the cause."""


@dataclass(slots=True)
class Known:
    """What the journal knows of one task. Times are the kernel's."""

    task: Task
    parent: tuple[str, int] | None
    """The attempt whose child it is: task and token."""
    fingerprint: str = ""
    """What makes it the same task, as the journal has kept it."""
    state: State = State.BLOCKED
    attempts: int = 0
    """Those that came to an end."""
    cut_off: int = 0
    started_at: float | None = None
    retry_at: float | None = None
    deadline_at: float | None = None
    group_until: float | None = None
    """When the time of those it was submitted with is over."""
    priority: int | None = None
    error: ErrorRecord | None = None
    usage: Usage = NO_USAGE
    answers: list[tuple[str, str]] = field(default_factory=list)
    """Questions it asked and the answers it was given, in order."""
    outcome: Outcome[Any] | None = None
    running: int | None = None
    """The token of the attempt that had not ended."""
    was_cut_off: bool = False
    """Its last attempt was: the next one is given the same answers again."""
    may_run_again: bool = False
    """A person has said so since."""

    def cut(self, counts: bool = True) -> None:
        """Its attempt was cut off, and does not count as one.

        It counts as cut off unless we were told to stop: then it cannot have been the cause.
        """
        self.running, self.state, self.was_cut_off = None, State.WAITING, True
        self.may_run_again = False
        self.attempts -= 1
        self.cut_off += counts

    def before(self, attempts: int, paused: bool) -> s.Past:
        """What the kernel has to know when it is submitted again, with so many attempts at most.

        Whoever allows fewer than it has had wants it to have no more than one.
        """
        had = min(self.attempts, attempts - 1)
        return s.Past(had, self.started_at, self.retry_at, self.deadline_at, self.error, paused)


class Past:
    """Everything that a run has behind it."""

    def __init__(self, epoch: float) -> None:
        self.tasks: dict[str, Known] = {}
        self._epoch = epoch
        self.latest = 0.0
        """When the last of it happened, in the time of the kernel."""
        self.last_token = 0
        self.spent: list[tuple[float, str, int]] = []
        """What was taken from rates: when, from which, how much."""
        self.capacities: dict[str, int] = {}
        """Those that were changed while it ran."""
        self.rates: dict[str, s.SetRate] = {}
        """The same of rates."""
        self.throttles: dict[str, s.Throttle] = {}
        self.held: dict[str, float] = {}
        """Rates that let nothing through, and until when."""
        self._asked_of_rates: dict[tuple[int, int], tuple[Claim, ...]] = {}
        self._taken: dict[tuple[int, int], list[int]] = {}
        self._questions: dict[tuple[str, int], str] = {}
        self._terms: Together | None = None
        self._left = 0

    def fold(self, events: Iterable[Event]) -> Past:
        """Take in what happened, in order."""
        for event in events:
            self.latest = max(self.latest, event.at - self._epoch)
            self._event(event, event.at - self._epoch)
        return self

    def _event(self, event: Event, now: float) -> None:
        data = event.data
        match event.kind:
            case Kind.SUBMITTED:
                self._submitted(data, now)
            case Kind.BLOCKED | Kind.WAITING | Kind.RETRYING | Kind.NEEDS_YOU | Kind.RUNNING:
                known = self.tasks[event.task_id]
                known.state = data.state
                known.retry_at = data.until
            case Kind.STARTED:
                self._started(self.tasks[event.task_id], data, now)
            case Kind.ENDED:
                self._ended(self.tasks[event.task_id], data.token, data.error)
            case Kind.STOP_REQUESTED:
                self._ended(self.tasks[event.task_id], data.token, None)
            case Kind.INTERRUPTED:
                self.tasks[event.task_id].cut(counts=data.get("by") != "signal")
            case Kind.SETTLED | Kind.REUSED:
                self._settled(event.task_id, data)
            case Kind.GRANTED:
                self._granted(data, now)
            case Kind.USED:
                known = self.tasks[event.task_id]
                known.usage = known.usage.plus(data)
            case Kind.COMMAND:
                self._asked(data)

    def _submitted(self, task: Task, now: float) -> None:
        terms, parent, group_until = self._terms, None, None
        if terms is not None:
            parent = None if terms.parent is None else (terms.parent, terms.token)
            group_until = None if terms.deadline is None else now + terms.deadline
            self._left -= 1
            if not self._left:
                self._terms = None
        earlier = self.tasks.get(task.id)
        if earlier is not None:  # the run was taken up before, and its program brought it again
            self.tasks[task.id] = replace(earlier, task=task)
            return
        self.tasks[task.id] = known = Known(task, parent)
        known.state, known.group_until = State.WAITING, group_until
        if isinstance(task.deadline, float):
            known.deadline_at = now + task.deadline

    def _started(self, known: Known, start: do.Start, now: float) -> None:
        known.state = State.RUNNING
        known.running = start.token
        known.attempts = start.attempt
        known.retry_at = None
        if not known.was_cut_off:
            known.answers = []
        known.was_cut_off = False
        if known.started_at is None:
            known.started_at = now
        self.last_token = max(self.last_token, start.token)
        self._take(known.task.claims, now)

    def _ended(self, known: Known, token: int, error: ErrorRecord | None) -> None:
        if known.running == token:
            known.running = None
            known.error = error or known.error

    def _settled(self, task_id: str, outcome: Outcome[Any]) -> None:
        known = self.tasks[task_id]
        if isinstance(outcome.result, NotStored):
            # It succeeded, but nobody can have its result any more: it has to run again.
            known.running, known.attempts, known.state = None, 0, State.WAITING
            return
        known.outcome, known.state, known.running = outcome, outcome.status, None

    def _granted(self, resume: do.Resume, now: float) -> None:
        self.last_token = max(self.last_token, resume.grant)
        request, first = (resume.token, resume.request), len(self.spent)
        self._take(self._asked_of_rates.pop(request, resume.claims), now)
        self._taken[request] = list(range(first, len(self.spent)))

    def _take(self, claims: Iterable[Claim], now: float) -> None:
        # Which of them are rates is known to whoever takes the run up.
        self.spent += [(now, each.resource, each.amount) for each in claims if not each.is_path]

    def _asked(self, asked: Any) -> None:
        match asked:
            case Together():
                self._terms, self._left = asked, asked.size
            case s.SetCapacity():
                self.capacities[asked.resource] = asked.capacity
            case s.SetRate():
                self.rates[asked.resource] = asked
            case s.Throttle():
                self.throttles[asked.resource] = asked
            case s.HoldRate():
                self.held[asked.resource] = max(self.held.get(asked.resource, 0.0), asked.until)
            case s.Unpause(task_id=str(task_id)):
                self.tasks[task_id].may_run_again = True
            case s.Prioritize():
                self.tasks[asked.task_id].priority = asked.priority
            case s.Take():
                self._asked_of_rates[asked.token, asked.request] = asked.claims
            case s.Withdraw():
                self._asked_of_rates.pop((asked.token, asked.request), None)
            case s.Used():
                for index in self._taken.get((asked.token, asked.request), ()):
                    at, resource, _ = self.spent[index]
                    if resource == asked.resource:
                        self.spent[index] = (at, resource, asked.amount)
            case s.Ask():
                self._questions[asked.task_id, asked.request] = asked.question
            case s.Answer():
                question = self._questions.get((asked.task_id, asked.request))
                if question is not None:
                    self.tasks[asked.task_id].answers.append((question, asked.answer))

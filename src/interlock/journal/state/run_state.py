"""The fold: the events of a run go in, and the state of the run and of its tasks comes out.

There is one fold for every use. The journal fills its table of tasks from it, a resume restores the
kernel from it, and views describe it. It is pure: no clock, no I/O, no decisions.

It knows the data of events by name and not by class: most of those classes are the kernel's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from interlock.journal.state.task_state import TaskState
from interlock.model.claim import Claim
from interlock.model.event import COMMAND_NAMES, Event, Kind
from interlock.model.labels import AGENT_LABEL, RETRY_OF_LABEL
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.model.usage import Usage

_LONGEST = 2_000
"""How many characters of a prompt or a result are kept; the rest is in the journal."""

Keeps = Literal["everything", "texts", "nothing"]
OnUnknown = Callable[[str], TaskState | None]
"""What to do about an event of a task that was not submitted before."""


def ignore(_task_id: str) -> None:
    """Ignore the event."""


class RunState:
    """A run, as far as its events were taken in.

    `started_at` is when it began, in seconds since 1970. `keeps` says how much is kept of tasks and
    results: `everything`, for a resume; `texts`, to show them; or `nothing`.
    """

    def __init__(
        self, started_at: float, *, keeps: Keeps = "texts", on_unknown: OnUnknown = ignore
    ) -> None:
        self.started_at = started_at
        self.ended_at: float | None = None
        self.last = 0
        """The number of the last event."""
        self.latest = 0.0
        """When the latest event happened, in the run. The clock may have been set back since."""
        self.tasks: dict[str, TaskState] = {}
        """In the order in which they were submitted first."""
        self.slots = 0
        self.is_paused = False
        self.is_draining = False
        self.last_token = 0
        """The largest fencing token that was given out."""
        self.spent: list[tuple[float, str, int]] = []
        """What was taken from rates: when (in the run), from which, how much."""
        self.capacities: dict[str, int] = {}
        """Those that were changed while the run went on."""
        self.rates: dict[str, Any] = {}
        """The same of rates: what was asked for last."""
        self.throttles: dict[str, Any] = {}
        self.held: dict[str, float] = {}
        """Rates that let nothing through, and until when, in the run."""
        self._keeps = keeps
        self._whole = keeps == "everything"
        self._on_unknown = on_unknown
        self._claims_of_takes: dict[tuple[int, int], tuple[Claim, ...]] = {}
        self._spent_by: dict[tuple[int, int], list[int]] = {}
        self._questions: dict[tuple[str, int], str] = {}
        self._terms: Any = None
        """Of the submission whose tasks come next."""
        self._submitted_with = 0
        """So many of its tasks are to come."""

    def take(self, event: Event) -> None:
        """Take in what happened next."""
        self.last = event.number
        now = event.at - self.started_at
        if now > self.latest:
            self.latest = now
        react = _REACTIONS.get(event.kind)
        if react is not None:
            react(self, event)

    def take_all(self, events: Iterable[Event]) -> RunState:
        """Take in several events."""
        for event in events:
            self.take(event)
        return self

    def _task(self, event: Event) -> TaskState | None:
        return self.tasks.get(event.task_id) or self._on_unknown(event.task_id)

    # -- the run ----------------------------------------------------------------------------

    def _run_started(self, event: Event) -> None:
        self.slots = (get(event.data, "kernel") or {}).get("slots") or self.slots
        self.ended_at = None
        self.is_draining = False
        for task in self.tasks.values():  # whatever was left of attempts ended with its process
            task.unstopped = frozenset()

    def _run_ended(self, event: Event) -> None:
        self.ended_at = event.at
        self.is_draining = False

    # -- a task and its states --------------------------------------------------------------

    def _submitted(self, event: Event) -> None:
        task, now = event.data, event.at - self.started_at
        parent, group_until = (None, None) if self._terms is None else self._take_terms(now)
        if not isinstance(task, Task):
            return
        found = self.tasks.get(event.task_id)
        if found is not None and found.submitted is not None:
            found.submit_again()
        else:
            self.tasks[event.task_id] = found = TaskState(event.task_id)
            found.submitted, found.parent, found.group_until = event.number, parent, group_until
            if isinstance(task.deadline, float):
                found.deadline_at = now + task.deadline
        found.state = State.BLOCKED if task.after else State.WAITING
        found.since = found.submitted_at = event.at
        found.task = task if self._whole else None
        if self._keeps != "nothing":
            found.agent = task.labels.get(AGENT_LABEL) or _name(task.agent)
            found.prompt = str(task.prompt or "")[:_LONGEST]
        found.claims, found.after = task.claims, task.after
        found.priority, found.estimate = task.priority, task.estimate
        found.allowed_attempts = task.retry.attempts
        found.retry_of = task.labels.get(RETRY_OF_LABEL, "")

    def _take_terms(self, now: float) -> tuple[tuple[str, int] | None, float | None]:
        """The parent of the next task, and when the time of its group is over."""
        terms = self._terms
        self._submitted_with -= 1
        if not self._submitted_with:
            self._terms = None
        parent = None if terms.parent is None else (terms.parent, terms.token)
        return parent, None if terms.deadline is None else now + terms.deadline

    def _stands(self, event: Event) -> None:
        task = self._task(event)
        if task is None:
            return
        if event.kind is Kind.NEEDS_YOU:
            task.asked_at = event.at
        else:
            task.question = ""
            if task.asked_at is not None:
                task.waited += event.at - task.asked_at
                task.asked_at = None
        task.state, task.since = State(event.kind.value), event.at
        task.retry_at = get(event.data, "until")

    def _started(self, event: Event) -> None:
        task = self._task(event)
        if task is None:
            return
        now, token = event.at - self.started_at, get(event.data, "token")
        task.state, task.since, task.attempt_started_at = State.RUNNING, event.at, event.at
        task.attempt = task.attempts = get(event.data, "attempt") or 0
        task.token = task.running = token
        task.retry_at = task.attempt_error = task.fraction = None
        task.message = task.log = ""
        if task.was_cut_off:
            task.was_cut_off = False
        elif task.answers:
            task.answers = []
        if task.first_start is None:
            task.first_start = now
        if token and token > self.last_token:
            self.last_token = token
        if self._whole:
            self._spend(task.claims, now)

    def _launched(self, event: Event) -> None:
        task = self._task(event)
        if task is not None:
            task.log = get(event.data, "log") or ""
            if task.log:
                task.logs += ((task.attempt or 0, task.log),)

    def _attempt_over(self, event: Event) -> None:
        task = self._task(event)
        if task is None:
            return
        token, error = get(event.data, "token"), get(event.data, "error")
        if not isinstance(error, ErrorRecord):
            error = None
        if error is not None:
            task.attempt_error = error
        if task.running == token:
            task.running = None
            task.error = error or task.error
        if event.kind is Kind.STOP_REQUESTED or not get(event.data, "gone", True):
            task.unstopped |= {token}
            task.is_stopping = True

    def _attempt_exited(self, event: Event) -> None:
        task = self._task(event)
        if task is not None:
            task.unstopped -= {get(event.data, "token")}
            task.is_stopping = task.is_stopping and bool(task.unstopped)

    def _interrupted(self, event: Event) -> None:
        """It was cut off with its coordinator, and waits to be run again."""
        task = self._task(event)
        if task is not None:
            ended = task.outcome is not None
            state = task.state
            task.cut(counts=get(event.data, "by") != "signal")
            if ended:
                task.state = state
            else:
                task.since, task.question = event.at, ""

    def _settled(self, event: Event) -> None:
        task, outcome = self._task(event), event.data
        if task is None or not isinstance(outcome, Outcome):
            return
        task.state, task.since, task.ended_at = outcome.status, event.at, event.at
        task.settled, task.running = event.number, None
        task.is_reused = event.kind is Kind.REUSED
        task.question, task.outcome = "", outcome
        if self._keeps == "texts":
            task.output = shown(outcome.result)
            task.outcome = replace(outcome, result=None, exception=None)

    def _reported(self, event: Event) -> None:
        task = self._task(event)
        if task is not None:
            task.fraction = get(event.data, "fraction")
            task.message = get(event.data, "message") or ""

    def _logged(self, event: Event) -> None:
        task = self._task(event)
        if task is not None:
            task.message = get(event.data, "line") or ""

    def _used(self, event: Event) -> None:
        task = self._task(event)
        if task is not None and isinstance(event.data, Usage):
            task.usage = task.usage.plus(event.data)

    # -- limits, questions, commands --------------------------------------------------------

    def _granted(self, event: Event) -> None:
        resume, now = event.data, event.at - self.started_at
        grant = get(resume, "grant") or 0
        self.last_token = max(self.last_token, grant)
        task = self._task(event)
        if task is not None and grant:
            task.token = grant
        request, first = (get(resume, "token"), get(resume, "request")), len(self.spent)
        self._spend(self._claims_of_takes.pop(request, get(resume, "claims") or ()), now)
        if len(self.spent) > first:
            self._spent_by[request] = list(range(first, len(self.spent)))

    def _spend(self, claims: Iterable[Claim], now: float) -> None:
        # Which of these resources are rates is not in the events: the resumed run knows.
        if self._whole:
            self.spent += [(now, each.resource, each.amount) for each in claims if not each.is_path]

    def _command(self, event: Event) -> None:
        name = COMMAND_NAMES.get(type(event.data))
        react = _COMMANDS.get(name or "")
        if react is not None:
            react(self, event.data)

    def _submit_together(self, terms: Any) -> None:
        self._terms, self._submitted_with = terms, terms.size

    def _set_capacity(self, asked: Any) -> None:
        self.capacities[asked.resource] = asked.capacity
        if asked.resource == "slots":
            self.slots = asked.capacity

    def _set_rate(self, asked: Any) -> None:
        self.rates[asked.resource] = asked

    def _throttle(self, asked: Any) -> None:
        self.throttles[asked.resource] = asked

    def _hold_rate(self, asked: Any) -> None:
        self.held[asked.resource] = max(self.held.get(asked.resource, 0.0), asked.until)

    def _pause(self, asked: Any) -> None:
        if asked.task_id is None:
            self.is_paused = True

    def _resume(self, asked: Any) -> None:
        if asked.task_id is None:
            self.is_paused = False
        elif asked.task_id in self.tasks:
            self.tasks[asked.task_id].may_run_again = True

    def _prioritize(self, asked: Any) -> None:
        if asked.task_id in self.tasks:
            task = self.tasks[asked.task_id]
            task.priority = task.new_priority = asked.priority

    def _take_from_rate(self, asked: Any) -> None:
        self._claims_of_takes[asked.token, asked.request] = asked.claims

    def _withdraw(self, asked: Any) -> None:
        self._claims_of_takes.pop((asked.token, asked.request), None)

    def _use_of_rate(self, asked: Any) -> None:
        for index in self._spent_by.get((asked.token, asked.request), ()):
            at, resource, _ = self.spent[index]
            if resource == asked.resource:
                self.spent[index] = (at, resource, asked.amount)

    def _ask(self, asked: Any) -> None:
        if self._whole:
            self._questions[asked.task_id, asked.request] = asked.question
        if asked.task_id in self.tasks:
            self.tasks[asked.task_id].question = asked.question

    def _answer(self, asked: Any) -> None:
        question = self._questions.get((asked.task_id, asked.request))
        if question is not None and asked.task_id in self.tasks:
            self.tasks[asked.task_id].answers.append((question, asked.answer))

    def _drain(self, asked: Any) -> None:
        self.is_draining = True


_REACTIONS: dict[Kind, Callable[[RunState, Event], None]] = {
    Kind.RUN_STARTED: RunState._run_started,
    Kind.RUN_ENDED: RunState._run_ended,
    Kind.SUBMITTED: RunState._submitted,
    Kind.BLOCKED: RunState._stands,
    Kind.WAITING: RunState._stands,
    Kind.RETRYING: RunState._stands,
    Kind.RUNNING: RunState._stands,
    Kind.NEEDS_YOU: RunState._stands,
    Kind.STARTED: RunState._started,
    Kind.LAUNCHED: RunState._launched,
    Kind.COMMAND: RunState._command,
    Kind.STOP_REQUESTED: RunState._attempt_over,
    Kind.ENDED: RunState._attempt_over,
    Kind.ATTEMPT_EXITED: RunState._attempt_exited,
    Kind.INTERRUPTED: RunState._interrupted,
    Kind.GRANTED: RunState._granted,
    Kind.SETTLED: RunState._settled,
    Kind.REUSED: RunState._settled,
    Kind.REPORTED: RunState._reported,
    Kind.LOGGED: RunState._logged,
    Kind.USED: RunState._used,
}

_COMMANDS: dict[str, Callable[[RunState, Any], None]] = {
    "submit_together": RunState._submit_together,
    "set_capacity": RunState._set_capacity,
    "set_rate": RunState._set_rate,
    "throttle": RunState._throttle,
    "hold_rate": RunState._hold_rate,
    "pause": RunState._pause,
    "resume": RunState._resume,
    "prioritize": RunState._prioritize,
    "take": RunState._take_from_rate,
    "withdraw": RunState._withdraw,
    "used": RunState._use_of_rate,
    "ask": RunState._ask,
    "answer": RunState._answer,
    "drain": RunState._drain,
    "shutdown": RunState._drain,
}


def get(data: Any, name: str, otherwise: Any = None) -> Any:
    """One of the details of an event, whether they are a dict or a record."""
    if isinstance(data, dict):
        return data.get(name, otherwise)
    return getattr(data, name, otherwise)


def shown(result: Any) -> str:
    """A result as text, shortened."""
    if result is None:
        return ""
    if not isinstance(result, str):
        try:
            result = json.dumps(result, ensure_ascii=False, default=str)
        except (TypeError, ValueError):
            result = str(result)
    return str(result)[:_LONGEST]


def _name(agent: Any) -> str:
    if isinstance(agent, str):
        return agent.rpartition(":")[2].rpartition(".")[2]  # `module:Class.name` in the journal
    return str(getattr(agent, "name", "") or getattr(agent, "__name__", "") or type(agent).__name__)

"""From the events of a run to what people are told of it: the same for a live run and a journal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.model.claim import Claim, Mode
from interlock.model.event import Event, Kind
from interlock.model.labels import AGENT_LABEL, RETRY_OF_LABEL
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.progress import Progress
from interlock.model.task import Task
from interlock.model.usage import Usage

_LONGEST = 2_000
"""So much of a prompt or a result is carried along; the rest is in the journal."""


class RunFold:
    """Takes in the events of one run, in order; `facts()` says how it stands."""

    def __init__(self, run_id: str, started_at: float, *, plan: str = "") -> None:
        self.run_id = run_id
        self.plan = plan
        self.last = 0
        self.started_at = started_at
        self._ended_at: float | None = None
        self._tasks: dict[str, TaskFacts] = {}
        self._asked_at: dict[str, float] = {}
        self._waited: dict[str, float] = {}
        """Seconds in which a task waited for a person: nobody worked on it."""
        self._unstopped: dict[str, set[int]] = {}
        """Tokens of attempts that are over and not gone, by task."""
        self.logs: dict[str, dict[int, str]] = {}
        """Where the output of attempts is kept: by task, then by attempt."""
        self._paused: set[str] = set()
        self._slots = 0
        self._draining = False

    def take(self, events: Iterable[Event]) -> RunFold:
        """Take in what happened next."""
        for event in events:
            self.last = event.number
            react = _REACTIONS.get(event.kind)
            if react is not None:
                react(self, event, event.fields if event.data is not None else {})
        return self

    def facts(self, at: float, *, active: bool = True) -> RunFacts:
        """How the run stands at this moment. What nobody carries out any more was cut off."""
        tasks = _latest(self._tasks)
        if not active and self._ended_at is None:
            tasks = tuple(_cut_off(task) for task in tasks)
        counts = Counter(task.state for task in tasks)
        zombies = sum(map(len, self._unstopped.values()))
        return RunFacts(
            self.run_id,
            at if self._ended_at is None else max(at, self._ended_at),
            self.started_at,
            self._ended_at,
            self.plan,
            self._slots,
            active and self._ended_at is None,
            "" in self._paused,
            self._draining and self._ended_at is None,
            tasks,
            Progress(**{state.value: count for state, count in counts.items()}, zombies=zombies),
            self.last,
        )

    def all_tasks(self) -> tuple[TaskFacts, ...]:
        """Every task, also those that were done again."""
        return tuple(self._tasks.values())

    def task(self, task_id: str) -> TaskFacts | None:
        """One task, if the run has it."""
        return self._tasks.get(task_id)

    # -- reactions --------------------------------------------------------------------------

    def _change(self, event: Event, **changes: Any) -> None:
        task = self._tasks.get(event.task_id)
        if task is not None:
            self._tasks[event.task_id] = replace(task, **changes)

    def _run_started(self, event: Event, fields: dict[str, Any]) -> None:
        self._slots = fields.get("kernel", {}).get("slots") or self._slots
        self._ended_at = None
        self._draining = False
        self._unstopped.clear()

    def _run_ended(self, event: Event, fields: dict[str, Any]) -> None:
        self._ended_at = event.at
        self._draining = False  # it has drained

    def _submitted(self, event: Event, fields: dict[str, Any]) -> None:
        task = event.data
        if not isinstance(task, Task):
            return
        self._tasks[task.id] = TaskFacts(
            task.id,
            State.BLOCKED if task.after else State.WAITING,
            event.at,
            agent=task.labels.get(AGENT_LABEL) or _name(task.agent),
            prompt=str(task.prompt or "")[:_LONGEST],
            claims=tuple(said(claim) for claim in task.claims),
            after=task.after,
            priority=task.priority,
            attempts=task.retry.attempts,
            submitted_at=event.at,
            estimate=task.estimate,
            retry_of=task.labels.get(RETRY_OF_LABEL, ""),
        )

    def _stands(self, event: Event, fields: dict[str, Any]) -> None:
        asked = self._asked_at.pop(event.task_id, None)
        if asked is not None:
            self._waited[event.task_id] = self._waited.get(event.task_id, 0.0) + event.at - asked
        self._change(event, state=State(event.kind.value), since=event.at, question="")

    def _needs_you(self, event: Event, fields: dict[str, Any]) -> None:
        self._asked_at[event.task_id] = event.at
        self._change(event, state=State.NEEDS_YOU, since=event.at)

    def _started(self, event: Event, fields: dict[str, Any]) -> None:
        self._change(
            event,
            state=State.RUNNING,
            since=event.at,
            started_at=event.at,
            attempt=fields["attempt"],
            fraction=None,
            message="",
            error="",
            error_type="",
            log="",
        )

    def _launched(self, event: Event, fields: dict[str, Any]) -> None:
        task, path = self._tasks.get(event.task_id), fields.get("log") or ""
        if task is not None and path:
            self.logs.setdefault(task.id, {})[task.attempt] = path
        self._change(event, log=path)

    def _asked(self, event: Event, fields: dict[str, Any]) -> None:
        if "question" in fields:
            self._change(event, question=fields["question"])
        elif "priority" in fields:
            self._change(event, priority=fields["priority"])
        elif fields.get("resource") == "slots" and "capacity" in fields:
            self._slots = fields["capacity"]
        else:
            name = fields.get("command")
            if name == "pause":
                self._paused.add(event.task_id)
            elif name == "resume":
                self._paused.discard(event.task_id)
            elif name in ("drain", "shutdown"):
                self._draining = True

    def _over(self, event: Event, fields: dict[str, Any]) -> None:
        error = fields.get("error")
        if isinstance(error, ErrorRecord):
            self._change(event, error=error.message, error_type=error.type)
        if event.kind is Kind.STOP_REQUESTED or not fields.get("gone", True):
            self._unstopped.setdefault(event.task_id, set()).add(fields["token"])
            self._change(event, stopping=True)

    def _gone(self, event: Event, fields: dict[str, Any]) -> None:
        left = self._unstopped.get(event.task_id, set())
        left.discard(fields["token"])
        if not left:
            self._unstopped.pop(event.task_id, None)
            self._change(event, stopping=False)

    def _interrupted(self, event: Event, fields: dict[str, Any]) -> None:
        """It was cut off with its coordinator, and waits to be run again."""
        task = self._tasks.get(event.task_id)
        if task is not None and not task.state.is_end:
            self._change(event, state=State.WAITING, since=event.at, question="")

    def _settled(self, event: Event, fields: dict[str, Any]) -> None:
        outcome = event.data
        if not isinstance(outcome, Outcome):
            return
        waited = self._waited.pop(event.task_id, 0.0)
        here = event.kind is Kind.SETTLED  # or an earlier run has done it, in its own time
        self._change(
            event,
            state=outcome.status,
            since=event.at,
            ended_at=event.at,
            duration=max(0.0, outcome.duration - waited) if here else 0.0,
            attempt=outcome.attempts if here else 0,
            error=outcome.error.message if outcome.error else outcome.reason,
            error_type=outcome.error.type if outcome.error else "",
            cause=outcome.cause,
            ended_by=outcome.ended_by,
            tokens=outcome.usage.tokens_in + outcome.usage.tokens_out,
            cost=outcome.usage.cost or 0.0,
            question="",
            output=shown(outcome.result),
        )

    def _reported(self, event: Event, fields: dict[str, Any]) -> None:
        self._change(event, fraction=fields.get("fraction"), message=fields.get("message") or "")

    def _logged(self, event: Event, fields: dict[str, Any]) -> None:
        self._change(event, message=fields.get("line") or "")

    def _used(self, event: Event, fields: dict[str, Any]) -> None:
        task, used = self._tasks.get(event.task_id), event.data
        if task is not None and isinstance(used, Usage):
            tokens = task.tokens + used.tokens_in + used.tokens_out
            self._change(event, tokens=tokens, cost=task.cost + (used.cost or 0.0))


_REACTIONS: dict[Kind, Callable[[RunFold, Event, dict[str, Any]], None]] = {
    Kind.RUN_STARTED: RunFold._run_started,
    Kind.RUN_ENDED: RunFold._run_ended,
    Kind.SUBMITTED: RunFold._submitted,
    Kind.BLOCKED: RunFold._stands,
    Kind.WAITING: RunFold._stands,
    Kind.RETRYING: RunFold._stands,
    Kind.RUNNING: RunFold._stands,
    Kind.NEEDS_YOU: RunFold._needs_you,
    Kind.STARTED: RunFold._started,
    Kind.LAUNCHED: RunFold._launched,
    Kind.COMMAND: RunFold._asked,
    Kind.STOP_REQUESTED: RunFold._over,
    Kind.ENDED: RunFold._over,
    Kind.ATTEMPT_EXITED: RunFold._gone,
    Kind.INTERRUPTED: RunFold._interrupted,
    Kind.SETTLED: RunFold._settled,
    Kind.REUSED: RunFold._settled,
    Kind.REPORTED: RunFold._reported,
    Kind.LOGGED: RunFold._logged,
    Kind.USED: RunFold._used,
}


def _latest(tasks: Mapping[str, TaskFacts]) -> tuple[TaskFacts, ...]:
    """Each task as it was done last, in the place of the one that was to be done again."""
    last = {task_id: task_id for task_id in tasks}
    for task in tasks.values():
        if task.retry_of in last:
            last[task.retry_of] = task.id
    return tuple(tasks[last[each.id]] for each in tasks.values() if each.retry_of not in last)


def _cut_off(task: TaskFacts) -> TaskFacts:
    if task.state in (State.RUNNING, State.NEEDS_YOU):
        return replace(task, state=State.WAITING, question="", stopping=False)
    return replace(task, stopping=False)


def said(claim: Claim) -> str:
    """A claim as people write it."""
    if claim.is_path:
        return f"{'writes' if claim.mode is Mode.WRITE else 'reads'} {claim.resource}"
    return f"uses {claim}"


def shown(result: Any) -> str:
    """A result as text."""
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

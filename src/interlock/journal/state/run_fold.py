"""A run as people are told of it: the same for a live run and for a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from interlock.journal.state.run_facts import RunFacts, TaskFacts
from interlock.journal.state.run_state import RunState, shown
from interlock.journal.state.task_state import TaskState
from interlock.model.claim import Claim, Mode
from interlock.model.event import Event
from interlock.model.outcome import State
from interlock.model.progress import Progress

__all__ = ["RunFold", "said", "shown"]


class RunFold:
    """Takes in the events of one run, in order; `facts()` describes it at that point."""

    def __init__(self, run_id: str, started_at: float, *, plan: str = "") -> None:
        self.run_id = run_id
        self.plan = plan
        self.started_at = started_at
        self._state = RunState(started_at)
        self._described: dict[str, TaskFacts] = {}
        """The tasks that have not changed since they were described."""

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._state.last

    def take(self, events: Iterable[Event]) -> RunFold:
        """Take in what happened next."""
        for event in events:
            self._state.take(event)
            self._described.pop(event.task_id, None)
        return self

    def facts(self, at: float, *, active: bool = True) -> RunFacts:
        """The run at this moment. Without an active coordinator, what ran was cut off."""
        state = self._state
        tasks = _latest({task_id: self._facts(each) for task_id, each in state.tasks.items()})
        if not active and state.ended_at is None:
            tasks = tuple(_cut_off(task) for task in tasks)
        counts = Counter(task.state for task in tasks)
        zombies = sum(len(each.unstopped) for each in state.tasks.values())
        return RunFacts(
            self.run_id,
            at if state.ended_at is None else max(at, state.ended_at),
            self.started_at,
            state.ended_at,
            self.plan,
            state.slots,
            active and state.ended_at is None,
            state.is_paused,
            state.is_draining and state.ended_at is None,
            tasks,
            Progress(**{state.value: count for state, count in counts.items()}, zombies=zombies),
            state.last,
        )

    def all_tasks(self) -> tuple[TaskFacts, ...]:
        """Every task, also those that were repeated since."""
        return tuple(map(self._facts, self._state.tasks.values()))

    def task(self, task_id: str) -> TaskFacts | None:
        """One task, if the run has it."""
        found = self._state.tasks.get(task_id)
        return None if found is None else self._facts(found)

    def logs(self, task_id: str) -> Mapping[int, str]:
        """Where the output of a task's attempts is kept, by attempt."""
        found = self._state.tasks.get(task_id)
        return {} if found is None else dict(found.logs)

    def _facts(self, task: TaskState) -> TaskFacts:
        facts = self._described.get(task.id)
        if facts is None:
            facts = self._described[task.id] = _described(task)
        return facts


def _described(task: TaskState) -> TaskFacts:
    outcome, error, usage, attempt = task.outcome, task.attempt_error, task.usage, task.attempt or 0
    message = "" if error is None else error.message
    duration = 0.0
    if outcome is not None:
        error, usage = outcome.error, outcome.usage
        message = outcome.reason if error is None else error.message
        if task.is_reused:  # an earlier run has done it, in its own time
            attempt = 0
        else:
            attempt, duration = outcome.attempts, max(0.0, outcome.duration - task.waited)
    return TaskFacts(
        task.id,
        task.state or State.WAITING,
        task.since or 0.0,
        agent=task.agent,
        prompt=task.prompt,
        claims=tuple(said(claim) for claim in task.claims),
        after=task.after,
        priority=task.priority,
        attempt=attempt,
        attempts=task.allowed_attempts,
        submitted_at=task.submitted_at,
        started_at=task.attempt_started_at,
        ended_at=task.ended_at,
        duration=duration,
        estimate=task.estimate,
        fraction=task.fraction,
        message=task.message,
        tokens=usage.tokens_in + usage.tokens_out,
        cost=usage.cost or 0.0,
        error=message,
        error_type="" if error is None else error.type,
        cause="" if outcome is None else outcome.cause,
        ended_by="" if outcome is None else outcome.ended_by,
        retry_of=task.retry_of,
        question=task.question,
        stopping=task.is_stopping,
        output=task.output,
        log=task.log,
    )


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
    """A claim in the words of plans: `writes src/**`, `uses gpu`."""
    if claim.is_path:
        return f"{'writes' if claim.mode is Mode.WRITE else 'reads'} {claim.resource}"
    return f"uses {claim}"

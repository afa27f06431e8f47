"""Statements 5, 6 and 9: one outcome, durable before it is told; dependencies in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from interlock.errors import InterlockError
from interlock.model.event import Event, Kind
from interlock.model.outcome import Outcome, State
from interlock.testing.site import Moment
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.record import RunRecord


def settled(record: RunRecord) -> dict[str, tuple[Moment, Outcome[Any]]]:
    """When which outcome was durable, by task."""
    return {e.task_id: (at, e.data) for at, e in record.events if e.kind is Kind.SETTLED}


def badly_settled(play: Play) -> Iterator[str]:
    """Tasks without exactly one outcome in the journal, the same as in the handle."""
    record = play.record
    times = Counter(e.task_id for _, e in record.events if e.kind is Kind.SETTLED)
    ends = settled(record)
    for task_id in record.asked:
        if times[task_id] != 1:
            yield f"5: {task_id} has {times[task_id]} outcomes in the journal"
    for task_id in times.keys() - record.asked.keys():
        yield f"5: {task_id} has an outcome, and was never submitted"
    for task_id, handle in play.handles.items():
        if handle.outcome is None:
            yield f"5: the handle of {task_id} has no outcome"
        elif task_id in ends and handle.outcome is not ends[task_id][1]:
            yield f"5: {task_id} ended as {handle.outcome}, in the journal as {ends[task_id][1]}"
    for told in record.told:
        end = ends.get(told.outcome.task_id)
        if end is not None and end[1] is not told.outcome:
            yield f"5: a caller was told {told.outcome}, the journal has {end[1]}"


def badly_numbered(record: RunRecord) -> Iterator[str]:
    """Runs whose events are not numbered without gaps."""
    for events in _by_run(record):
        numbers = [event.number for event in events]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"5: events are numbered {numbers}"


def badly_recorded(play: Play) -> Iterator[str]:
    """Followers and listeners that did not get all events in order."""
    record = play.record
    yield from badly_numbered(record)
    by_run = _by_run(record)
    first = by_run[0] if by_run and play.runtime is not None else []
    # Following ends with a shutdown, although what is submitted after it is recorded as well.
    shut_down = any(act.kind == "shutdown" for act in play.story.acts)
    if record.followed != (first[: len(record.followed)] if shut_down else first):
        yield f"5: the follower saw {len(record.followed)} of {len(first)} events"
    heard = record.heard
    if heard != first[len(first) - len(heard) :] or (first and not heard):
        yield f"5: the listener heard {len(heard)} of {len(first)} events, or in another order"


def _by_run(record: RunRecord) -> list[list[Event]]:
    found: list[list[Event]] = []
    for _, event in record.events:
        if event.kind is Kind.RUN_STARTED:
            found.append([])
        found[-1].append(event)
    return found


def badly_told(record: RunRecord) -> Iterator[str]:
    """Effects before their commit: agents that ran, or callers that were told, too early."""
    starts = {(e.task_id, e.data.attempt): at for at, e in record.events if e.kind is Kind.STARTED}
    for visit in record.site.visits:
        start = starts.get((visit.task_id, visit.attempt))
        if start is None or start.number > visit.began.number:
            yield f"6: {visit} began before that was in the journal"
    ends = settled(record)
    for told in record.told:
        task_id = told.outcome.task_id
        end = ends.get(task_id)
        if end is None or end[0].number > told.at.number:
            yield f"6: a caller was told how {task_id} ended before that was in the journal"


def badly_ordered(record: RunRecord) -> Iterator[str]:
    """Starts before all dependencies had succeeded, and dependents of a failure not skipped."""
    ends = settled(record)
    after = {each: _dependencies(asked.task) for each, asked in record.asked.items()}
    for visit in record.site.visits:
        for dependency in after.get(visit.task_id, ()):
            did = [v for v in record.site.of(dependency) if v.gone.number < visit.began.number]
            if not any(_succeeded(v) for v in did):
                yield f"9: {visit} began before {dependency} had succeeded"
    for task_id, dependencies in after.items():
        if task_id not in ends:
            continue
        at, outcome = ends[task_id]
        for dependency in dependencies:
            end = ends.get(dependency)
            if end is None or end[1].status is State.SUCCEEDED:
                continue
            if outcome.status is State.SUCCEEDED:
                yield f"9: {task_id} succeeded although {dependency} did not"
            asked = record.asked[task_id].at.time
            if at.time > max(end[0].time, asked) + _slack(record):
                yield f"9: {task_id} was settled after {dependency} had been"
    for task_id, (_, outcome) in ends.items():
        # For a child that runs again under a new name, the names of its dependencies are unknown.
        if outcome.status is State.SKIPPED and "~" not in task_id:
            causes = [ends[d][1].status for d in after.get(task_id, ()) if d in ends]
            if not any(status is not State.SUCCEEDED for status in causes):
                yield f"9: {task_id} was skipped for nothing"


def _slack(record: RunRecord) -> float:
    """How long it takes until a request is in the journal."""
    return record.journal_takes * 3 + 1e-6


def _dependencies(task: Any) -> tuple[str, ...]:
    given = tuple(each.task_id for each in task.args if hasattr(each, "task_id"))
    return tuple(dict.fromkeys((*task.after, *given)))


def _succeeded(visit: Any) -> bool:
    value = visit.value
    failed = isinstance(value, (BaseException, Outcome))
    return visit.ended_by is None and not visit.killed and not failed


def was_broken(play: Play) -> bool:
    """Whether the whole run was ended by an error of the runtime, which all callers were told."""
    block = play.record.block
    return isinstance(block, InterlockError) and type(block) is InterlockError

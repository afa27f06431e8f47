"""Statements 11 to 14: attempts, backoff, deadlines, cancellation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from interlock.model.outcome import State
from interlock.testing.site import NEVER, Visit
from tests.simulation.runtime.agents import FINAL
from tests.simulation.runtime.outcomes import settled
from tests.simulation.runtime.play import Play
from tests.simulation.runtime.record import RunRecord

_A_BIT = 1e-6
_KILLING = 0.5
"""How long it may take after the grace until killed attempts are gone."""


def too_many_attempts(record: RunRecord) -> Iterator[str]:
    """Tasks with more attempts than allowed, overlapping attempts, or wrong counts."""
    ends = settled(record)
    for task_id, asked in record.asked.items():
        visits = record.site.of(task_id)
        most = asked.task.retry.attempts
        if len(visits) > most:
            yield f"11: {task_id} was tried {len(visits)} times, {most} are allowed"
        numbers = [each.attempt for each in visits]
        if numbers != sorted(set(numbers)):
            yield f"11: the attempts of {task_id} are numbered {numbers}"
        for before, after in pairwise(visits):
            if after.began.number < before.gone.number:
                yield f"11: {after} began before {before} was gone"
        if task_id in ends and ends[task_id][1].attempts < len(visits):
            counted = ends[task_id][1].attempts
            yield f"11: {task_id} was tried {len(visits)} times, and {counted} were counted"


def gives_up(play: Play) -> Iterator[str]:
    """Tasks that failed although attempts were left and the failure was not final."""
    ends = settled(play.record)
    for task_id, (_, outcome) in ends.items():
        plan = play.plans.get(task_id)
        if plan is None or outcome.status is not State.FAILED or task_id not in play.record.asked:
            continue
        final = any(s.kind in FINAL for c in plan.courses for s in c)
        if not final and outcome.attempts < plan.task.retry.attempts:
            yield f"11: {task_id} failed after {outcome.attempts} attempts, and had more"


def too_early(play: Play) -> Iterator[str]:
    """Attempts that began before the backoff of the last one was over."""
    record = play.record
    for task_id, asked in record.asked.items():
        retry = asked.task.retry
        visits = record.site.of(task_id)
        for before, after in pairwise(visits):
            full = min(retry.max_backoff, retry.backoff * 2 ** (before.attempt - 1))
            least = full * (1 - retry.jitter)
            stopped = min(before.told.time, _ran_out(before, asked.task.timeout))
            failed = min(before.gone.time, stopped)
            # What it says after that is not listened to; the time of an attempt runs from its
            # grant on, which a slow journal lets it know of later.
            if before.gone.time < stopped - 3 * play.story.journal_takes:
                least = max(least, getattr(before.ended_by, "retry_after", 0.0))
            if after.began.time < failed + least - _A_BIT:
                yield f"12: {after} began {after.began.time - failed:g} s after {before} failed"
    yield from gives_up(play)


def _ran_out(visit: Visit, timeout: float | None) -> float:
    return visit.began.time + timeout if timeout is not None else float("inf")


def late(play: Play) -> Iterator[str]:
    """Timeouts, deadlines and callers that were answered too late."""
    record, slack = play.record, 5 * play.story.journal_takes + _A_BIT
    ends = settled(record)
    for task_id, asked in record.asked.items():
        if task_id not in ends:
            continue
        at, outcome = ends[task_id]
        deadline = asked.task.deadline
        if isinstance(deadline, float) and at.time > asked.at.time + deadline + slack:
            yield f"13: {task_id} ended at {at.time:g}, after its deadline"
        timeout = asked.task.timeout
        for visit in record.site.of(task_id):
            if timeout is None or visit.gone.time <= visit.began.time + timeout:
                continue
            last = visit.attempt == outcome.attempts == asked.task.retry.attempts
            if last and at.time > visit.began.time + timeout + slack:
                yield f"13: {task_id} ended at {at.time:g}; {visit} may take {timeout:g} s"
            if last and outcome.status is State.SUCCEEDED:
                yield f"13: {visit} succeeded after its timeout"
    for task_id, since in record.abandoned:
        if task_id in ends and ends[task_id][0].time > since.time + slack:
            yield f"14: {task_id} went on after its only caller had gone, at {since.time:g}"
    for told in record.told:
        task_id = told.outcome.task_id
        if task_id in ends and told.alone:
            due = max(ends[task_id][0].time, told.asked.time)
            if told.at.time > due + slack:
                yield f"13: the caller of {task_id} was told {told.at.time - due:g} s late"


def too_stubborn(play: Play) -> Iterator[str]:
    """Attempts that outlived the grace although they ignored at most three cancellations."""
    record, grace = play.record, play.story.grace
    ends = settled(record)
    for visit in record.site.visits:
        plan = play.plans.get(visit.task_id.partition("~")[0])
        end = ends.get(visit.task_id)
        if end is not None and end[0].number < visit.gone.number and visit.never_told:
            yield f"14: {visit} was never told that its task had ended at {end[0].time:g}"
        if visit.is_waiting:
            yield f"14: {visit} still waits in mid-flight, for ever"
        if plan is None or visit.told is NEVER or plan.place == "thread":
            continue
        killable = plan.place == "process"
        latest = visit.told.time + grace + 3 * play.story.journal_takes + _A_BIT
        if (killable or plan.swallows <= 3) and visit.gone.time > latest:
            yield f"14: {visit} was told to stop at {visit.told.time:g}, the grace is {grace:g} s"
    begins, left = record.begins, record.left
    last = max((at.time for at, _ in ends.values()), default=begins.time)
    limit = max(begins.time, last) + grace + _KILLING + 4 * play.story.journal_takes + _A_BIT
    if left.time > limit:
        yield f"14: the block was left at {left.time:g}, {left.time - limit:g} s after the grace"

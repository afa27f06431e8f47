"""The rules that each instruction, and the state after every `handle()`, must keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from interlock.kernel import instructions as told
from interlock.kernel import stimuli as event
from interlock.model.claim import Claim
from interlock.model.outcome import State
from tests.simulation.kernel.amounts import exceeding
from tests.simulation.kernel.deadlock import depends_on_order, may_be_stuck, stuck
from tests.simulation.kernel.shadow import (
    Shadow,
    ShadowAttempt,
    ShadowRequest,
    ShadowTask,
    Violation,
)

BROKEN = (State.FAILED, State.TIMED_OUT, State.CONFLICTED)
"""The ends that make a fail-fast group cancel its other tasks."""
UNSUCCESSFUL = (*BROKEN, State.CANCELLED, State.SKIPPED)
"""The ends that make dependents settle as skipped."""


def timeout_at(attempt: ShadowAttempt) -> float:
    """When the timeout of an attempt is over."""
    timeout = attempt.item.task.timeout
    return math.inf if timeout is None else attempt.started_at + timeout


def check_start(shadow: Shadow, start: told.Start) -> None:
    """Check that this attempt may start at this point."""
    item = shadow.items.get(start.task_id)
    if item is None:
        raise Violation(f"{start} of a task that was never submitted")
    if item.status is not None:
        raise Violation(f"S5: {start} after the task had settled as {item.status}")
    if item.attempt is not None:
        raise Violation(f"S4: {start} while attempt {item.attempt.number} is not gone")
    if start.attempt != item.attempts + 1 or start.attempt > item.task.retry.attempts:
        allowed = item.task.retry.attempts
        raise Violation(f"S11: {start} is attempt {item.attempts + 1} of at most {allowed}")
    if start.token <= shadow.last_token:
        raise Violation(f"S3: {start} has a token that is not newer than {shadow.last_token}")
    shadow.last_token = start.token
    for dependency in shadow.unmet(item):
        raise Violation(f"S9: {start} although {dependency} has not succeeded")
    if item.due is not None and item.due > shadow.now:
        raise Violation(f"S12: {start} before its backoff is over at {item.due}")
    if shadow.paused or item.paused:
        raise Violation(f"{start} although it is paused")
    if shadow.draining and not item.exempt:
        raise Violation(f"{start} although the run is draining")
    check_grant(shadow, item, item.task.claims, start)


def check_grant(
    shadow: Shadow, item: ShadowTask, claims: tuple[Claim, ...], told_now: told.Start | told.Resume
) -> None:
    """Check that these claims conflict with nothing that is held and fit into what is left."""
    for holder in shadow.against(item, claims):
        if isinstance(told_now, told.Resume) and item in holder.item.ancestors():
            continue  # An extension to what its own child holds is no conflict.
        kind = "zombie" if holder.over else "attempt"
        raise Violation(
            f"S1: {told_now} is granted what {kind} {holder.item.id} (token {holder.token}) holds"
        )
    for claim in exceeding(shadow, item, claims):
        raise Violation(f"S10: {told_now} gets {claim}, more than is left of its capacity")
    for claim in shadow.limited(claims, shadow.now):
        raise Violation(f"S10: {told_now} takes {claim}, more than its rate lets through now")


def check_resume(shadow: Shadow, resume: told.Resume) -> tuple[ShadowAttempt, ShadowRequest]:
    """Check that the attempt waits for this and may have it; returns its request."""
    attempt = shadow.alive.get(resume.token)
    if attempt is None or attempt.over or attempt.item.id != resume.task_id:
        raise Violation(f"{resume} of an attempt that is over")
    request = attempt.requests.get(resume.request)
    if request is None:
        raise Violation(f"{resume} answers nothing that was asked")
    added = request.claims if request.kind == "extend" else ()
    if added != resume.claims or bool(added) != bool(resume.grant):
        raise Violation(f"{resume} grants other claims than were asked for")
    if request.kind in ("extend", "take"):
        check_grant(shadow, attempt.item, request.claims, resume)
    unfinished = [name for name in request.tasks if shadow.items[name].status is None]
    if unfinished:
        raise Violation(f"{resume} although {unfinished[0]} has not ended")
    if request.kind == "ask" and not request.answered:
        raise Violation(f"{resume} although it has not been answered")
    return attempt, request


def check_deny(shadow: Shadow, deny: told.Deny) -> tuple[ShadowAttempt, ShadowRequest]:
    """Check that the wait might never have ended; returns the attempt and its request."""
    attempt = shadow.alive.get(deny.token)
    request = attempt.requests.get(deny.request) if attempt else None
    if attempt is None or request is None:
        raise Violation(f"{deny} answers nothing that was asked")
    claims = request.claims
    impossible = any(c.amount > shadow.capacities[c.resource] for c in shadow.counted(claims))
    hangs = depends_on_order(shadow) or attempt in may_be_stuck(shadow)
    if not impossible and not hangs:
        raise Violation(f"{deny} although that wait would have ended")
    return attempt, request


class AttemptReport(NamedTuple):
    """The outcome of an attempt, and whether the task has another attempt."""

    status: State
    tries_again: bool


@dataclass(slots=True)
class JudgedTurn:
    """What happened in one `handle()`, as far as the rules need it."""

    stimulus: event.Stimulus
    asked: set[ShadowTask] = field(default_factory=set)
    """Tasks whose cancellation this stimulus asks for."""
    reports: dict[str, AttemptReport] = field(default_factory=dict)
    """The outcomes that it reported, by task, if they still count."""
    settled: list[ShadowTask] = field(default_factory=list)
    asker: ShadowAttempt | None = None
    request: ShadowRequest | None = None
    """What that attempt asked for in mid-flight."""
    took_slot: bool = False
    ended: list[int] = field(default_factory=list)
    """Tokens of the attempts that reported their end in it."""
    went: list[int] = field(default_factory=list)
    """Tokens of the attempts that are gone since."""


def check(shadow: Shadow, turn: JudgedTurn) -> None:
    """Everything that must hold after a `handle()`."""
    taken = shadow.slots_taken()
    if turn.took_slot and taken > shadow.slots:
        raise Violation(f"S10: {taken} attempts hold one of {shadow.slots} slots")
    for name, report in turn.reports.items():
        _check_outcome(shadow.items[name], report)
    for item in turn.settled:
        _check_end(shadow, item, turn)
    for item in shadow.open.values():
        if item in turn.asked:
            raise Violation(f"S14: {item.id} was to be cancelled and has not settled")
        _check_open(shadow, item)
    if isinstance(turn.stimulus, event.Tick):
        _check_times(shadow)
    _check_timer(shadow)
    for attempt in stuck(shadow):
        raise Violation(f"S9: the wait of {attempt.item.id} in mid-flight can never end (deadlock)")


def _check_open(shadow: Shadow, item: ShadowTask) -> None:
    """An unfinished task has no reason to be settled."""
    for dependency in item.task.after:
        if shadow.items[dependency].status in UNSUCCESSFUL:
            raise Violation(f"S9: {item.id} was not skipped although {dependency} did not succeed")
    if item.parent is not None and item.parent.over:
        raise Violation(f"S14: child {item.id} was not cancelled although its parent is over")
    if item.group is not None and item.group.failed:
        raise Violation(f"S14: {item.id} was not cancelled although its group failed fast")
    if item.attempt and item.attempt.over and item.due is None and item.ready is None:
        raise Violation(f"S5: the attempt of {item.id} is over, but it has no outcome")


def _check_outcome(item: ShadowTask, report: AttemptReport) -> None:
    """Check that an outcome that was reported in time is the outcome of the task."""
    if report.tries_again:
        if item.status is State.FAILED:
            raise Violation(f"S11: {item.id} failed for good with attempts left")
    elif item.status is not report.status:
        raise Violation(f"S5: {item.id} reported {report.status}, which is not its outcome")


def _check_end(shadow: Shadow, item: ShadowTask, turn: JudgedTurn) -> None:
    """Check that a task settled for a reason, and that its attempt was stopped."""
    attempt = item.attempt
    if attempt and not attempt.stopped and not attempt.ended:
        raise Violation(f"S14: {item.id} settled as {item.status}, its attempt got no Stop")
    match item.status:
        case State.SKIPPED:
            just = any(shadow.items[d].status in UNSUCCESSFUL for d in item.task.after)
        case State.CANCELLED:
            just = item in turn.asked or _follows(item)
        case State.TIMED_OUT:
            late = attempt is not None and timeout_at(attempt) <= shadow.now
            last = item.attempts >= item.task.retry.attempts
            overdue = any(end <= shadow.now for end in item.deadlines)
            just = isinstance(turn.stimulus, event.Tick) and (overdue or (late and last))
        case _:
            just = item.id in turn.reports and turn.reports[item.id].status is item.status
    if not just:
        raise Violation(f"S5: {item.id} settled as {item.status} without a reason")


def _follows(item: ShadowTask) -> bool:
    """Whether a task is cancelled because its parent is over or its group failed fast."""
    if item.parent is not None and (item.parent.over or item.parent.item.status is not None):
        return True
    return item.group is not None and item.group.failed


def _check_times(shadow: Shadow) -> None:
    for item in shadow.open.values():
        if any(end <= shadow.now for end in item.deadlines):
            raise Violation(f"S13: {item.id} is past its deadline and has not settled")
        if item.due is not None and item.due <= shadow.now and item.attempt is None:
            raise Violation(f"S9: the backoff of {item.id} is over, but it does not wait to start")
    for attempt in shadow.alive.values():
        if not attempt.over and timeout_at(attempt) <= shadow.now:
            raise Violation(f"S13: {attempt.item.id} is past its timeout and was not stopped")


def _check_timer(shadow: Shadow) -> None:
    """Check that the next tick comes no later than the first thing that is due."""
    dues = [end for item in shadow.open.values() for end in item.deadlines]
    dues += [item.due for item in shadow.open.values() if item.due is not None]
    dues += [timeout_at(a) for a in shadow.alive.values() if not a.over]
    first = min((d for d in dues if d > shadow.ticked_at), default=math.inf)
    timer = math.inf if shadow.timer is None else shadow.timer
    if first < timer:
        raise Violation(f"S13: something is due at {first}, but the timer is set for {timer}")

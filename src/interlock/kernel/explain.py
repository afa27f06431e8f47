"""Why a task waits: every reason at once.

Admission stops at the first obstacle it finds. This module looks at everything that is held, so
that a person sees all of them. It is slow on purpose, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.kernel.meters import ALL, Meter, describe_rate_limit
from interlock.kernel.records import Attempt, Entry, ExternalHold, Request, WaitKind
from interlock.kernel.waiters import Amounts, Grant
from interlock.model.claim import Claim
from interlock.model.conflict import conflicts
from interlock.model.outcome import State
from interlock.model.throttled import OpenBreaker
from interlock.model.why import (
    Backoff,
    Draining,
    Explanation,
    HeldClaim,
    NoCapacity,
    Paused,
    PreviousAttemptAlive,
    RateLimited,
    Reason,
    ReservedClaim,
    UnansweredQuestion,
    UnfinishedDependency,
    UnfinishedTask,
)

if TYPE_CHECKING:
    from interlock.kernel.run import KernelRun


def explain(run: KernelRun, task_id: str, now: float) -> Explanation:
    """Return everything that stands between a task and its start, or the answer to its requests."""
    if task_id in run.ends:
        return Explanation(task_id, run.ends[task_id], run.ended_at[task_id], (), None, (), now)
    entry = run.unfinished(task_id)
    state = entry.state
    assert state is not None
    if state in (State.RUNNING, State.NEEDS_YOU):
        reasons = list(_open_requests(run, entry))
    else:
        reasons = [*_own(run, entry), *_claims(run, entry), *_capacity(run, entry)]
    needed = _dependencies(run, entry)
    return Explanation(
        task_id,
        state,
        entry.since,
        tuple(reasons),
        _clears_at(run, reasons),
        tuple(dict.fromkeys(filter(None, (_help(reason, needed) for reason in reasons)))),
        now,
    )


def _own(run: KernelRun, entry: Entry) -> Iterator[Reason]:
    for dependency in entry.task.after:
        before = run.entries.get(dependency)
        if before is not None and before.state is not None and not before.is_over:
            yield UnfinishedDependency(dependency, before.state, before.since)
    extras = entry.extras
    if extras.paused_since is not None:
        yield Paused(False, max(entry.since, extras.paused_since))
    if run.paused_since is not None:
        yield Paused(True, run.paused_since)
    if run.draining_since is not None and extras.parent is None and not extras.is_awaited:
        yield Draining(run.draining_since)
    if extras.retry_timer is not None:
        yield Backoff(entry.attempts, entry.since, extras.retry_at)
    if entry.attempt is not None:
        yield PreviousAttemptAlive(entry.attempt.token, entry.since)


def _claims(run: KernelRun, entry: Entry) -> Iterator[Reason]:
    yield from _held(run, entry.task.claims, entry.kin)
    waiter = entry.waiter
    if waiter is None or waiter.profile.exempt:
        return
    for ahead in run.admission.due_waiters:
        if ahead.overtaken.is_due and ahead.turn < waiter.turn:
            older: Entry = ahead.owner
            overtaken = ahead.overtaken.times
            for mine in entry.task.claims:
                for theirs in older.task.claims:
                    if _meet(run, mine, theirs) is not None:
                        yield ReservedClaim(mine, older.task.id, theirs, older.since, overtaken)


def _held(run: KernelRun, claims: tuple[Claim, ...], kin: tuple[Grant, ...]) -> Iterator[HeldClaim]:
    for grant in run.admission.grants:
        if grant in kin:
            continue
        holder, held = _holder(grant)
        for mine in claims:
            for theirs, since in held:
                witness = _meet(run, mine, theirs)
                # A name with a capacity is counted, not held; it is explained as capacity.
                counted = not mine.is_path and mine.resource in run.table.meters
                if witness is not None and not counted:
                    yield HeldClaim(mine, holder, theirs, since, grant.zombie, witness)


def _holder(grant: Grant) -> tuple[str, list[tuple[Claim, float]]]:
    """Return the name of a holder, and its claims with since when it has held them."""
    if isinstance(grant, ExternalHold):
        return grant.name, [(claim, grant.since) for claim in grant.claims]
    assert isinstance(grant, Attempt)
    first = [(claim, grant.since) for claim in grant.entry.task.claims]
    return grant.entry.task.id, [*first, *grant.extra]


def _meet(run: KernelRun, mine: Claim, theirs: Claim) -> str | None:
    found = conflicts(mine, theirs, fold_case=run.table.fold_case)
    return found.witness if found else None


def _capacity(run: KernelRun, entry: Entry) -> Iterator[Reason]:
    kin = entry.kin
    yield from _amounts(run, entry.amounts, kin, exempt=bool(kin) or entry.extras.is_awaited)
    slots = run.table.slots
    if slots.used >= slots.capacity:
        yield from _short(run, slots, 1)


def _amounts(
    run: KernelRun, amounts: Amounts, lenders: tuple[Grant, ...], *, exempt: bool
) -> Iterator[Reason]:
    for meter, amount in amounts:
        if meter.window is not None and not meter.fits(amount, lenders):
            yield describe_rate_limit(meter, amount)
        elif not meter.fits(amount, lenders) or (meter.reserved is not None and not exempt):
            yield from _short(run, meter, amount)


def _short(run: KernelRun, meter: Meter, amount: int) -> Iterator[Reason]:
    """Yield what keeps an amount from a task: the holders, or why it is throttled."""
    wanted = meter.most if amount == ALL else amount
    if meter.because is not None:
        yield meter.because
    if meter.because is None or meter.used + wanted > meter.most or meter.reserved is not None:
        yield _lacking(run, meter, wanted)


def _lacking(run: KernelRun, meter: Meter, wanted: int) -> NoCapacity:
    holders = []
    for grant in run.admission.grants:
        slots = meter is run.table.slots
        amount = int(grant.holds_slot) if slots else grant.amounts.get(meter, 0)
        if amount:
            holders.append((_holder(grant)[0], amount, grant.since))
    free = 0 if meter.alone else max(0, meter.capacity - meter.used)
    ahead = meter.reserved.owner.task.id if meter.reserved is not None else ""
    return NoCapacity(meter.name, wanted, free, meter.capacity, tuple(holders), ahead)


def _open_requests(run: KernelRun, entry: Entry) -> Iterator[Reason]:
    attempt = entry.attempt
    assert attempt is not None
    for request in attempt.requests.values():
        yield from _request(run, request)


def _request(run: KernelRun, request: Request) -> Iterator[Reason]:
    if request.waits_for is WaitKind.PERSON and request.waiter is None:
        yield UnansweredQuestion(request.question, request.since)
    for entry in request.tasks.values():
        if entry.state is not None:
            yield UnfinishedTask(entry.task.id, entry.state, entry.since)
    waiter = request.waiter
    if waiter is not None:
        profile = waiter.profile
        yield from _held(run, request.claims, profile.kin)
        yield from _amounts(run, profile.amounts, profile.lenders, exempt=True)
        slots = run.table.slots
        if not waiter.profile.has_slot and slots.used >= slots.capacity:
            yield from _short(run, slots, 1)


def _clears_at(run: KernelRun, reasons: list[Reason]) -> float | None:
    """Return when the last reason is expected to be gone; None if that cannot be foreseen."""
    latest = run.now
    for reason in reasons:
        at = _reason_clears_at(run, reason)
        if at is None:
            return None
        latest = max(latest, at)
    return latest if reasons else None


def _reason_clears_at(run: KernelRun, reason: Reason) -> float | None:
    match reason:
        case Backoff(until=until) | RateLimited(until=until) | OpenBreaker(until=until):
            return until
        case HeldClaim(holder=holder, stopping=False):
            return _ends_at(run, holder)
        case NoCapacity(wanted=wanted, free=free, holders=holders, reserved_for=""):
            for at, amount in sorted(_ends_of(run, holders)):
                free += amount
                if free >= wanted:
                    return at
    return None


def _ends_of(
    run: KernelRun, holders: tuple[tuple[str, int, float], ...]
) -> Iterator[tuple[float, int]]:
    for holder, amount, _ in holders:
        at = _ends_at(run, holder)
        if at is not None:
            yield at, amount


def _ends_at(run: KernelRun, task_id: str) -> float | None:
    """Return when a running task is expected to end, if it has an estimate and is not overdue."""
    entry = run.entries.get(task_id)
    if entry is None or entry.attempt is None or entry.task.estimate is None:
        return None
    at = entry.attempt.since + entry.task.estimate
    return at if at >= run.now else None


def _dependencies(run: KernelRun, entry: Entry) -> set[str]:
    """Return all unfinished tasks that have to succeed before this one."""
    found: set[str] = set()
    todo = list(entry.task.after)
    while todo:
        task_id = todo.pop()
        before = run.entries.get(task_id)
        if before is not None and task_id not in found:
            found.add(task_id)
            todo.extend(before.task.after)
    return found


def _help(reason: Reason, needed: set[str]) -> str:
    """Return what a person could do about a reason; empty if nothing."""
    match reason:
        case HeldClaim(holder=holder, stopping=False) if holder in needed:
            return ""  # Cancelling it would skip this task as well.
        case HeldClaim(holder=holder, claim=claim, stopping=True):
            return f"end what still runs of {holder!r}, which was told to stop and holds {claim}"
        case HeldClaim(holder=holder, claim=claim):
            return f"cancel {holder!r}, or claim less than {claim}"
        case NoCapacity(resource=resource, capacity=capacity):
            return f"raise the capacity of {resource!r} above {capacity}"
        case Paused(everything=True):
            return "resume the run"
        case Paused():
            return "resume the task"
        case UnansweredQuestion():
            return "answer the question"
    return ""

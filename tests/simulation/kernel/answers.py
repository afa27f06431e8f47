"""What the kernel answers (`state`, `why`, `progress`, `alive`) must be true and complete."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from interlock.model import why
from interlock.model.claim import Claim
from interlock.model.outcome import State
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker
from tests.simulation.kernel.amounts import exceeding, lacking
from tests.simulation.kernel.shadow import Shadow, ShadowRequest, ShadowTask, Violation, clash

if TYPE_CHECKING:
    from interlock.kernel.kernel import Kernel

ASKED_PER_STEP = 4
"""`why` is checked for so many of the tasks that do not run after every step, in rotation."""


def check(shadow: Shadow, kernel: Kernel) -> None:
    """Compare states, alive attempts, counts and reasons with the shadow."""
    _check_states(shadow, kernel)
    _check_progress(shadow, kernel)
    said = sorted(kernel.alive())
    alive = sorted(
        (a.item.id, a.token, a.over, shadow.is_seated(a), a.started_at)
        for a in shadow.alive.values()
        if not a.outside
    )
    if said != alive:
        raise Violation(f"alive() says {said}, not {alive}")
    idle = [i for i in shadow.open.values() if not i.running or (i.attempt and i.attempt.requests)]
    for number in range(min(ASKED_PER_STEP, len(idle))):
        item = idle[(shadow.step * ASKED_PER_STEP + number) % len(idle)]
        try:
            answer = kernel.why(item.id)
        except Exception as error:  # A crash of the kernel is a finding like any other.
            raise Violation(f"why({item.id!r}) raised {error!r}") from error
        _check_reasons(shadow, item, answer)


def _check_states(shadow: Shadow, kernel: Kernel) -> None:
    for item in shadow.open.values():
        said, state = kernel.state(item.id), shadow.state(item)
        if said is not state:
            raise Violation(f"{item.id} is {state}, but state() says {said}")


def _check_progress(shadow: Shadow, kernel: Kernel) -> None:
    progress = kernel.progress()
    counts = Counter(kernel.state(name) for name in shadow.items)
    for state in State:
        if getattr(progress, state.value) != counts[state]:
            raise Violation(f"progress() counts {state} wrongly: {progress}")
    zombies = sum(a.over for a in shadow.alive.values())
    if progress.total != len(shadow.items) or progress.zombies != zombies:
        raise Violation(f"progress() does not add up: {progress}")


def _check_reasons(shadow: Shadow, item: ShadowTask, answer: why.Explanation) -> None:
    for reason in answer.reasons:
        if not _is_true(shadow, item, reason):
            raise Violation(f"why({item.id!r}) gives a reason that does not hold: {reason}")
    missing = _missing(shadow, item, answer.reasons)
    if missing:
        raise Violation(f"why({item.id!r}) says nothing of {missing}: {answer.reasons}")
    if not answer.reasons:
        raise Violation(f"why({item.id!r}) gives no reason at all")


def _requests(item: ShadowTask) -> list[ShadowRequest]:
    """What a running task waits for in mid-flight."""
    return list(item.attempt.requests.values()) if item.running and item.attempt else []


def _wanted(item: ShadowTask) -> tuple[Claim, ...]:
    """What a task asks for now: all its claims, or the claims of its requests in mid-flight."""
    if item.running:
        return tuple(c for request in _requests(item) for c in request.claims)
    return item.task.claims


def _is_true(shadow: Shadow, item: ShadowTask, reason: why.Reason) -> bool:
    wanted = _wanted(item)
    match reason:
        case why.UnfinishedDependency(task_id=name):
            return name in shadow.unmet(item)
        case why.HeldClaim():
            holders = [a for a in shadow.alive.values() if a.item.id == reason.holder]
            return (
                reason.claim in wanted
                and any(reason.holder_claim in a.claims for a in holders)
                and all(a.over == reason.stopping for a in holders)
                and clash(reason.claim, reason.holder_claim, shadow.fold_case)
            )
        case why.ReservedClaim(older=older):
            held_back = not item.running and not item.exempt
            return held_back and shadow.items[older].may_close and older in shadow.open
        case why.NoCapacity(resource="slots") | ClosedGate() | LoadedMachine():
            return _lacks_slot(shadow, item)
        case why.NoCapacity():
            named = {c.resource for c in lacking(shadow, item, wanted)}
            return reason.resource in named or bool(reason.reserved_for)
        case why.RateLimited():
            at = shadow.ticked_at
            return reason.resource in [c.resource for c in shadow.limited(wanted, at)]
        case why.Paused():
            return shadow.paused if reason.everything else item.paused
        case why.Draining():
            return shadow.draining and not item.exempt
        case why.Backoff():
            return item.due == reason.until
        case why.PreviousAttemptAlive():
            return item.attempt is not None and item.attempt.over
        case why.UnansweredQuestion():
            return any(r.kind == "ask" and not r.answered for r in _requests(item))
        case why.UnfinishedTask(task_id=name):
            awaited = any(name in request.tasks for request in _requests(item))
            return awaited and shadow.items[name].status is None
        case why.StuckJournal() | OpenBreaker() | why.NoCoordinator():
            return False  # The kernel knows of no journal, and the oracle models no rations.


def _missing(shadow: Shadow, item: ShadowTask, reasons: tuple[why.Reason, ...]) -> str:
    """What else keeps the task from running, in words; empty if the reasons are complete."""
    told = [r.task_id for r in reasons if isinstance(r, why.UnfinishedDependency)]
    for name in shadow.unmet(item):
        if name not in told:
            return f"its dependency {name}"
    holders = [r.holder for r in reasons if isinstance(r, why.HeldClaim)]
    wanted = _wanted(item)
    for attempt in shadow.against(item, wanted):
        if attempt.item.id not in holders and item not in attempt.item.ancestors():
            return f"the holder {attempt.item.id}"
    short = [r.resource for r in reasons if isinstance(r, why.NoCapacity)]
    short += [r.resource for r in reasons if isinstance(r, why.RateLimited)]
    for claim in exceeding(shadow, item, wanted) + shadow.limited(wanted, shadow.now):
        if claim.resource not in short:
            return f"{claim.resource}, of which not enough is left"
    short += ["slots" for r in reasons if isinstance(r, (ClosedGate, LoadedMachine))]
    due = item.ready is not None or item.running
    if due and _lacks_slot(shadow, item) and "slots" not in short:
        return "the slot it lacks"
    questions = sum(isinstance(r, why.UnansweredQuestion) for r in reasons)
    if questions != sum(r.kind == "ask" and not r.answered for r in _requests(item)):
        return "a question"
    awaited = [r.task_id for r in reasons if isinstance(r, why.UnfinishedTask)]
    for name in (name for request in _requests(item) for name in request.tasks):
        if shadow.items[name].status is None and name not in awaited:
            return f"{name}, which it waits for"
    paused = (shadow.paused or item.paused) and not item.running
    if paused and not any(isinstance(r, why.Paused) for r in reasons):
        return "the pause"
    return ""


def _lacks_slot(shadow: Shadow, item: ShadowTask) -> bool:
    """Whether a slot is among what keeps a task from starting or from going on."""
    if shadow.slots_taken() < shadow.slots:
        return False
    if not item.running or item.attempt is None:
        return True
    return any(
        item.attempt.needs_slot(r)
        and (r.answered or all(shadow.items[name].status is not None for name in r.tasks))
        for r in _requests(item)
        if r.kind != "ask" or r.answered
    )

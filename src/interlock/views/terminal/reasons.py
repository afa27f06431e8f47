"""Why something waits, in the few words there is room for. The whole sentence is `said`."""

from __future__ import annotations

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.duration import span
from interlock.model.outcome import State
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker
from interlock.model.why import (
    Backoff,
    Draining,
    Explanation,
    HeldClaim,
    LackingCapacity,
    NotCarriedOut,
    Paused,
    Reason,
    ReservedClaim,
    SpentRate,
    StillAlive,
    StuckJournal,
    UnansweredQuestion,
    UnfinishedDependency,
    UnfinishedTask,
)
from interlock.views.terminal.cells import fit_name
from interlock.views.terminal.looks import LOOKS

_NAME = 32
"""Longer names are cut, or there would be no room for what is said of them."""


def briefly(explanation: Explanation | None) -> str:
    """All reasons, most telling first; the same thing is said once."""
    if explanation is None:
        return ""
    said = dict.fromkeys(brief(reason, explanation.at) for reason in explanation.reasons)
    return "; ".join(said) or "about to start"


def brief(reason: Reason, now: float) -> str:
    """One reason in a few words."""
    match reason:
        case UnfinishedDependency(task_id=task_id):
            return f"after {_name(task_id)}"
        case HeldClaim(holder=holder, holder_claim=claim, stopping=stopping):
            alive = "is not gone and " if stopping else ""
            return f"{_name(holder)} {alive}holds {_name(claim)}"
        case ReservedClaim(older=older, older_claim=claim):
            return f"{_name(older)} goes first for {_name(claim)}"
        case LackingCapacity(resource="slots", free=0, capacity=capacity):
            return f"no slot is free of {capacity}"
        case LackingCapacity(resource=resource, wanted=wanted, free=free, reserved_for=ahead):
            kept = f", kept for {_name(ahead)}" if ahead else ""
            return f"{wanted} {resource}: {free} free{kept}"
        case SpentRate(resource=resource, until=until):
            return f"rate {resource}: in {span(until - now)}"
        case OpenBreaker(resource=resource, failures=failures, until=until):
            row = f"{resource}: {failures} failures in a row"
            return f"{row}, next try {'runs' if until is None else 'in ' + span(until - now)}"
        case ClosedGate():
            return "the machine is too busy (gate)"
        case LoadedMachine(slots=slots, most=most):
            return f"the load allows {slots} of {most} slots"
        case Paused(everything=everything):
            return "the run is paused" if everything else "paused"
        case Draining():
            return "the run starts nothing any more"
        case Backoff(attempts=attempts, until=until):
            return f"attempt {attempts + 1} in {span(until - now)}"
        case StillAlive():
            return "its last attempt is not gone"
        case UnansweredQuestion(question=question):
            return f"your answer: {question}"
        case UnfinishedTask(task_id=task_id, state=state):
            return f"{_name(task_id)}, which is {LOOKS[state].word}"
        case StuckJournal(error=error):
            return f"the journal cannot be written: {error}"
        case NotCarriedOut():
            return "nobody carries out the run now"
    return reason.said(now)


def _name(name: object) -> str:
    return fit_name(str(name), _NAME)


def ending(task: TaskFacts) -> str:
    """Why a task did not succeed, or what it brought, in one line."""
    if task.state is State.SUCCEEDED:
        return task.output or task.message
    if task.state is State.SKIPPED and task.cause:
        return f"{task.cause} did not succeed"
    if task.error:
        return f"{task.error_type}: {task.error}" if task.error_type else task.error
    return task.cause

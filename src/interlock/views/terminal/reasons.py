"""Why a task waits, and why it ended, in one line of the live view."""

from __future__ import annotations

from interlock.journal.state.run_facts import TaskFacts
from interlock.model.outcome import State
from interlock.model.why import Explanation, Reason
from interlock.views.terminal.cells import fit_name

_MAX_NAME = 32
"""Longer names are shortened: otherwise they would leave no room for the rest of the line."""


def summarize(explanation: Explanation | None) -> str:
    """All reasons in a few words each, without repetition."""
    if explanation is None:
        return ""
    parts = dict.fromkeys(
        summarize_reason(reason, explanation.at) for reason in explanation.reasons
    )
    return "; ".join(parts) or "about to start"


def summarize_reason(reason: Reason, now: float) -> str:
    """One reason in a few words."""
    return reason.summarize(now, _shortened)


def _shortened(name: object) -> str:
    return fit_name(str(name), _MAX_NAME)


def ending(task: TaskFacts) -> str:
    """Why a task did not succeed, or what it returned, in one line."""
    if task.state is State.SUCCEEDED:
        return task.output or task.message
    if task.state is State.SKIPPED and task.cause:
        return f"{task.cause} did not succeed"
    if task.error:
        return f"{task.error_type}: {task.error}" if task.error_type else task.error
    return task.cause

"""Restore an interrupted run: bring a fresh kernel to where the last coordinator left it.

Every attempt of that coordinator is over: what it ran in ended with it (`orphan_processes.py` has
made sure). So each one is noted as interrupted, tasks that must not run again are settled, and the
kernel is told of everything that has ended and of every limit that was changed. Tasks that have not
ended are not restored here. They wait until the program submits them again.
"""

from __future__ import annotations

import contextlib
from contextvars import copy_context
from typing import Any

from interlock.errors import UnknownResource
from interlock.journal.state.run_state import RunState
from interlock.journal.state.task_state import TaskState
from interlock.kernel import stimuli as s
from interlock.model.event import Kind
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.throttled import OpenBreaker
from interlock.runtime.handle import Handle, Submission
from interlock.runtime.recovery.known_tasks import CUT_OFF_AT_MOST, WhenInterrupted
from interlock.runtime.shell import Shell


def restore_run(shell: Shell, past: RunState, when_interrupted: WhenInterrupted) -> None:
    """Bring the kernel to where the run was. Call it once, before anything is submitted."""
    for task_id, known in past.tasks.items():
        if known.running is not None:
            shell.note(Kind.INTERRUPTED, task_id, {"token": known.running, "by": "crash"})
            known.cut()
    for task_id, known in past.tasks.items():
        if known.outcome is None:
            known.outcome = _end(shell, task_id, known, when_interrupted)
            if known.outcome is not None:
                shell.note(Kind.SETTLED, task_id, known.outcome)
    known_ends = [known for known in past.tasks.values() if known.outcome is not None]
    ended = {known.id: known.outcome for known in known_ends if known.outcome is not None}
    if ended:
        # With `max_outcomes` the kernel forgets the oldest ends first. Those that unfinished tasks
        # depend on come last, so that these can still be submitted again.
        needed = {
            each for known in past.tasks.values() if known.outcome is None for each in known.after
        }
        ends = sorted(ended, key=needed.__contains__)
        shell.take_in(s.Recall(tuple((each, ended[each].status) for each in ends)))
    shell.tasks.restore(_handle(shell, known) for known in known_ends)
    _limits(shell, past)


def _limits(shell: Shell, past: RunState) -> None:
    """Restore the limits that were changed, what was taken from rates, and open breakers."""
    windows = shell.rates.windows()
    for resource, rate in past.rates.items():
        if resource in windows:
            shell.take_in(rate)
            windows[resource] = rate.window
    for at, resource, amount in sorted(past.spent):
        if at <= shell.now() < at + windows.get(resource, 0.0):
            shell.take_in(s.Spend(resource, amount, at))
    for resource, until in past.held.items():
        if resource in windows and until > shell.now():
            shell.take_in(s.HoldRate(resource, until))
    for resource, capacity in past.capacities.items():
        with contextlib.suppress(UnknownResource):  # the program no longer has it
            shell.take_in(s.SetCapacity(resource, capacity))
    for resource, throttle in past.throttles.items():
        if isinstance(throttle.because, OpenBreaker):
            shell.breakers.take_up(resource, throttle.because)


def _handle(shell: Shell, known: TaskState) -> Handle[Any]:
    submission = Submission(shell, copy_context(), known.parent)
    return Handle(submission, known.submission, None, known.outcome)


def _end(
    shell: Shell, task_id: str, known: TaskState, policy: WhenInterrupted
) -> Outcome[Any] | None:
    """The outcome of a task that must not run again; None for one that may."""
    error: ErrorRecord | None = None
    if known.parent is not None:
        # Its parent runs again, and submits it again if it still needs it.
        state, cause = State.CANCELLED, "its parent was cut off"
    elif known.was_cut_off and (policy == "fail" or known.cut_off >= CUT_OFF_AT_MOST):
        state, cause = State.FAILED, ""
        times = "once" if known.cut_off == 1 else f"{known.cut_off} times"
        error = ErrorRecord("CutOff", f"its attempt was cut off {times}", retryable=False)
    else:
        return None
    started = known.first_start
    return Outcome(
        task_id,
        state,
        error=error,
        attempts=known.attempts,
        started_at=None if started is None else shell.clock.moment(started),
        ended_at=shell.clock.moment(shell.now()),
        duration=0.0 if started is None else shell.now() - started,
        usage=known.usage,
        cause=cause,
    )

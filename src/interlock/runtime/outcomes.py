"""From the kernel's decision that a task is settled to the outcome that its caller gets."""

from __future__ import annotations

from typing import Any

from interlock.execution.ending import Ending
from interlock.kernel.instructions import Settle
from interlock.model.outcome import Outcome, State
from interlock.model.usage import NO_USAGE, Usage
from interlock.runtime.run_clock import RunClock


class OutcomeBuilder:
    """Adds to a decision what the kernel does not know: value, exception, usage, wall clock."""

    def __init__(self, clock: RunClock) -> None:
        self._clock = clock
        self._usage: dict[str, Usage] = {}
        """By task, over all attempts, until the task is settled."""

    def add_usage(self, task_id: str, used: Usage) -> None:
        """Attempts at a task have used this; its outcome will have the sum."""
        if used != NO_USAGE:
            self._usage[task_id] = self._usage.get(task_id, NO_USAGE).plus(used)

    def outcome(self, settle: Settle, ending: Ending | None) -> Outcome[Any]:
        """The outcome of a task; `ending` is how its last attempt ended, if that was heard."""
        status, started, ended = settle.status, settle.started_at, settle.ended_at
        moment = self._clock.moment
        result = exception = None
        # An attempt may have returned a value and its task been cancelled in the same turn: the
        # decision counts, so only an ending that agrees with it contributes.
        if ending is not None and status is State.SUCCEEDED:
            result = ending.value
        elif ending is not None and status is State.FAILED:
            exception = ending.exception
        return Outcome(
            settle.task_id,
            status,
            result,
            settle.error,
            settle.attempts,
            None if started is None else moment(started),
            moment(ended),
            0.0 if started is None else ended - started,
            self._usage.pop(settle.task_id, NO_USAGE),
            (),
            settle.cause,
            exception,
            settle.ended_by,
        )

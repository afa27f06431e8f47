"""Outcomes as an exception or as a status word."""

from __future__ import annotations

import asyncio
import concurrent.futures

import pytest

from interlock import Outcome, State, TaskFailed
from interlock.model.outcome import ErrorRecord
from interlock.runtime.outcome_conversion import (
    deliverable,
    error_text,
    exception_of,
    status_word,
)

RAISED = LookupError("gone")


@pytest.mark.parametrize(
    ("outcome", "kind", "word", "text"),
    [
        (Outcome("t", State.SUCCEEDED, 1), None, "success", None),
        (Outcome("t", State.FAILED, exception=RAISED), LookupError, "error", "failed"),
        (
            Outcome("t", State.FAILED, error=ErrorRecord("LookupError", "gone")),
            TaskFailed,
            "error",
            "LookupError: gone",
        ),
        (
            Outcome("t", State.TIMED_OUT, error=ErrorRecord("TimedOut", "after 3 s")),
            TimeoutError,
            "timeout",
            "TimedOut: after 3 s",
        ),
        (
            Outcome("t", State.CANCELLED, cause="no longer needed"),
            concurrent.futures.CancelledError,
            "cancelled",
            "no longer needed",
        ),
        (Outcome("t", State.SKIPPED, cause="a"), TaskFailed, "error", "'a' did not succeed"),
    ],
    ids=["succeeded", "failed here", "failed elsewhere", "timed out", "cancelled", "skipped"],
)
def test_an_outcome_has_an_exception_a_word_and_a_text(
    outcome: Outcome[int], kind: type[BaseException] | None, word: str, text: str | None
) -> None:
    error = exception_of(outcome, "agent 'a'")
    assert (None if error is None else type(error)) is kind
    assert status_word(outcome) == word
    assert error_text(outcome) == text


def test_an_error_that_would_mean_something_else_to_the_caller_is_wrapped() -> None:
    outcome: Outcome[int] = Outcome("t", State.FAILED)
    assert deliverable(RAISED, outcome) is RAISED
    for error in (SystemExit(), StopIteration(), asyncio.CancelledError()):
        wrapped = deliverable(error, outcome)
        assert isinstance(wrapped, TaskFailed)
        assert wrapped.__cause__ is error

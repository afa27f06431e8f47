"""Outcomes as the callers of other interfaces expect them: as an exception, or as a status word."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping
from typing import Any

from interlock.errors import TaskFailed
from interlock.model.outcome import Outcome, State

STATUS_WORDS: Mapping[State, str] = {
    State.SUCCEEDED: "success",
    State.TIMED_OUT: "timeout",
    State.CANCELLED: "cancelled",
}
"""The words of the systems whose contract says `success | error | timeout | cancelled`."""


def status_word(
    outcome: Outcome[Any], words: Mapping[State, str] = STATUS_WORDS, default: str = "error"
) -> str:
    """The status of an outcome in the words of a system."""
    return words.get(outcome.status, default)


def error_text(outcome: Outcome[Any]) -> str | None:
    """Why a task did not succeed, in one line; None if it did."""
    return None if outcome.succeeded else outcome.reason or str(outcome.status)


def exception_of(outcome: Outcome[Any], subject: str) -> BaseException | None:
    """The exception that stands for an outcome; None if the task succeeded.

    It is what the agent raised, in the process that saw it; TimeoutError, with `subject` as the
    beginning of its text; the CancelledError of `concurrent.futures`; TaskFailed otherwise.
    """
    match outcome.status:
        case State.SUCCEEDED:
            return None
        case State.CANCELLED:
            return concurrent.futures.CancelledError(outcome.reason)
        case State.TIMED_OUT:
            text = outcome.reason if outcome.error is None else outcome.error.message
            return TimeoutError(f"{subject}: {text}")
        case _:
            return outcome.exception or TaskFailed(outcome)


def deliverable(error: BaseException, outcome: Outcome[Any]) -> Exception:
    """The error, if raising it in a caller means what it says; else TaskFailed because of it.

    CancelledError, SystemExit or KeyboardInterrupt raised by an agent would tell the caller that
    the caller itself is cancelled or is to exit, and StopIteration would end its loop.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    failed = TaskFailed(outcome)
    failed.__cause__ = error
    return failed

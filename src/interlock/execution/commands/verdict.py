"""What the end of a program means: its exit code, and its output, which counts for more."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from interlock.execution.commands.output import ErrorFinder, Stream
from interlock.execution.ending import Ending
from interlock.execution.processes.shortage import is_shortage
from interlock.execution.processes.supervised_attempt import (
    SupervisorMessages,
    describe_exit,
    exit_code,
)
from interlock.model.outcome import ErrorRecord, State

CRASHED = "crashed"
CHECK_FAILED = "check_failed"
CANNOT_START = "cannot_start"
_FOR_GOOD = frozenset({"auth_error", CANNOT_START})
"""Failures that a further attempt would only repeat."""
_SHOWN = 500


class FinishedProgram(NamedTuple):
    """A program that has ended."""

    argv: list[str]
    messages: SupervisorMessages
    out: Stream
    err: Stream
    found: ErrorFinder

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if self.messages.status is None:
            return "was killed together with its supervisor"
        return describe_exit(exit_code(self.messages.status))


def failed(kind: str, message: str, *, passing: bool = False) -> Ending:
    """Return a failure of a kind. `passing`: retryable, although its kind usually is not."""
    retryable = passing or kind not in _FOR_GOOD
    return Ending(State.FAILED, None, ErrorRecord(kind, message, "", retryable))


def verdict(name: str, ran: FinishedProgram) -> Ending:
    """Return the ending of an agent: what it printed, or what went wrong.

    A success takes both: exit code 0, and no error pattern in the output.
    """
    messages, found = ran.messages, ran.found
    if messages.failure is not None:
        passing = is_shortage(messages.failure[0])
        return failed(CANNOT_START, _why_not(ran.argv[0], *messages.failure), passing=passing)
    if found.kind:
        return failed(found.kind, f"{name} {ran.how} and printed: {found.line[:_SHOWN]}")
    if messages.status != 0:
        return failed(CRASHED, f"{name} {ran.how}{_last(ran)}")
    return Ending(State.SUCCEEDED, ran.out.result())


def verdict_of_check(check: str, ran: FinishedProgram) -> Ending | None:
    """Return the ending of an agent whose check failed; None if the check succeeded."""
    if ran.messages.status == 0 and ran.messages.failure is None:
        return None
    return failed(CHECK_FAILED, f"the check {check!r} {ran.how}{_last(ran)}")


def _last(ran: FinishedProgram) -> str:
    line = ran.err.last_line or ran.out.last_line
    return f": {line}" if line else ""


def _why_not(program: str, number: int, step: str) -> str:
    if step == "enter":
        return f"the workspace cannot be entered: {os.strerror(number)}"
    if number == errno.ENOENT:
        where = "" if "/" in program else " in PATH"
        return (
            f"there is no program {program!r}{where}, or its interpreter is missing; "
            "install it, or name it by its path"
        )
    if number == errno.E2BIG:
        return (
            f"the arguments of {program!r} are longer than the system allows; "
            "pass the prompt as {prompt_file}, or by stdin"
        )
    return f"{program!r} cannot be run: {os.strerror(number)}"

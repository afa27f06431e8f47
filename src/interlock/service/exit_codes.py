"""The exit codes of the program."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the program."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    DEADLINE = 3
    CONFLICTED = 4
    INTERRUPTED = 130

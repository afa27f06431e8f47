"""What the program ends with."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the program ends with."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    DEADLINE = 3
    CONFLICTED = 4
    INTERRUPTED = 130

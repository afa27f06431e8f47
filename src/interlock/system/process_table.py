"""The processes that run now, read from the process table of Linux (/proc).

A dead process stays in the table until its parent has reaped it, which some parents never do (the
first process of a container, for instance). Dead processes do nothing, so `living`, `children` and
`members` leave them out.

The supervisor of an agent imports this module, and every start waits for it: keep it to `os`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DEAD = (b"Z", b"X")
_START_TICKS = 19
"""Which field behind the program's name is the start time (proc(5): field 22)."""


def living() -> Iterator[tuple[int, int, int]]:
    """Every process that runs: its pid, its parent, its group."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent, group = _stat(name)[:3]
        except (OSError, ValueError):
            continue  # it has ended since the folder was listed
        if state not in _DEAD:
            yield int(name), int(parent), int(group)


def children(parent: int) -> list[int]:
    """The living children of a process."""
    return [pid for pid, its_parent, _ in living() if its_parent == parent]


def members(group: int) -> list[int]:
    """The living members of a process group."""
    return [pid for pid, _, its_group in living() if its_group == group]


def start_ticks(pid: int) -> int:
    """When a process began, in clock ticks since the boot; 0 if there is no such process.

    A process that is dead and not reaped yet has its start time as well.
    """
    try:
        return int(_stat(pid)[_START_TICKS])
    except (OSError, IndexError):
        return 0


def is_running(pid: int) -> bool:
    """Whether a process exists and is not dead."""
    try:
        return _stat(pid)[0] not in _DEAD
    except (OSError, IndexError):
        return False


def _stat(pid: int | str) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # They follow the program's name in parentheses, which may hold anything.
        return file.read().rpartition(b")")[2].split()

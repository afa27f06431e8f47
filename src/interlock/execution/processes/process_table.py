"""Who is alive, read from the process table of Linux. Dead processes do nothing: they don't count.

Whether the dead are buried soon, or at all, is up to their parents, the first process of a
container for instance.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def children(parent: int) -> list[int]:
    """The living children of a process."""
    return [pid for pid, its_parent, _ in living() if its_parent == parent]


def members(group: int) -> list[int]:
    """The living members of a process group."""
    return [pid for pid, _, its_group in living() if its_group == group]


def living() -> Iterator[tuple[int, int, int]]:
    """Process, its parent, its group."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The fields stand behind the name of the program, which may hold anything.
                state, parent, group = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # it has gone while we looked
        if state not in (b"Z", b"X"):
            yield int(name), int(parent), int(group)

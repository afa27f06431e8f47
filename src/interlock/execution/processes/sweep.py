"""Ending processes that have lost their supervisor, and knowing when they are gone (Linux).

A pid alone does not identify a process: the system reuses it. So a process is recognised by its pid
together with its start time, or by variables in its environment, which its children inherit
wherever they go. Before it is signalled it is pinned by a pidfd, and recognised once more.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from interlock.execution.backend import Launched
from interlock.execution.processes.containment import remove_cgroup
from interlock.system.process_table import living, start_ticks

_PAUSE = 0.05
"""Seconds until the next look, for processes that were forked meanwhile."""


def find_running(
    launched: Collection[Launched], marks: Collection[Mapping[str, str]] = ()
) -> list[int]:
    """Return those of these processes that run; see `sweep` for what is meant."""
    if sys.platform != "linux":
        return []
    spared, wanted = _ancestors(), _ProcessFilter(launched, marks)
    found = [pid for pid, _, group in living() if pid not in spared and wanted.matches(pid, group)]
    return found or _in_cgroups(launched)


def sweep(
    launched: Collection[Launched],
    marks: Collection[Mapping[str, str]] = (),
    patience: float | None = None,
    *,
    just_lost: bool = False,
) -> list[int]:
    """Kill these processes, their groups, and all processes that have one of the marks.

    Returns an empty list when none is left, or after `patience` seconds the pids that are.
    `just_lost`: they were alive a moment ago, so a group is theirs even if its leader has been
    reaped.
    """
    if sys.platform != "linux":
        return _end_groups(launched)
    until = None if patience is None else time.monotonic() + patience
    wanted = _ProcessFilter(launched, marks, just_lost)
    while True:
        for each in launched:
            _kill_cgroup(each.cgroup)
        held = dict(_hold(wanted))
        # A process that has hidden its marks is known by its cgroup alone.
        hidden = [] if held else _in_cgroups(launched)
        try:
            if not held and not hidden:
                break
            for opened in held.values():
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(opened, signal.SIGKILL)
            _wait(held.values())
            if until is not None and time.monotonic() >= until:
                return list(held) or hidden
        finally:
            for opened in held.values():
                os.close(opened)
    for each in launched:
        if each.cgroup:
            remove_cgroup(each.cgroup)
    return []


def _end_groups(launched: Collection[Launched]) -> list[int]:
    """End the groups of processes that were alive a moment ago: without a process table."""
    for each in launched:
        with suppress(ProcessLookupError, PermissionError):
            while each.pid > 1:
                os.killpg(each.pid, signal.SIGKILL)
                select.select([], [], [], _PAUSE)
    return []


class _ProcessFilter:
    """Recognises processes: by pid and start time, or by variables."""

    def __init__(
        self,
        launched: Collection[Launched],
        marks: Collection[Mapping[str, str]],
        just_lost: bool = False,
    ) -> None:
        self._just_lost = just_lost
        self._known = {each.pid: each.started for each in launched if each.started}
        self._marks = [
            frozenset(os.fsencode(f"{name}={value}") for name, value in each.items())
            for each in marks
            if each
        ]

    def matches(self, pid: int, group: int) -> bool:
        if self._is_known(pid) or self._is_known(group) or self._is_without_leader(group):
            return True
        if not self._marks:
            return False
        environment = _environment(pid)
        return any(each <= environment for each in self._marks)

    def _is_known(self, pid: int) -> bool:
        return pid in self._known and start_ticks(pid) == self._known[pid]

    def _is_without_leader(self, group: int) -> bool:
        """Whether this is the group of one of them that has been reaped.

        While a group has members, no new process gets its number. So it could be the group of an
        unrelated process only after a long time, when that one has come and gone.
        """
        return self._just_lost and group in self._known and not start_ticks(group)


def _hold(wanted: _ProcessFilter) -> Iterator[tuple[int, int]]:
    """Yield the processes that are meant, each with a pidfd of it."""
    spared = _ancestors()
    for pid, _, group in living():
        if pid in spared or not wanted.matches(pid, group):
            continue
        with suppress(OSError):
            opened = os.pidfd_open(pid)
            if wanted.matches(pid, group):  # otherwise the pid was reused before it was pinned
                yield pid, opened
            else:
                os.close(opened)


def _environment(pid: int) -> frozenset[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return frozenset(file.read().split(b"\0"))
    except OSError:  # a process of another user, or gone
        return frozenset()


def _ancestors() -> set[int]:
    """Return this process and its ancestors: an agent of the run may have started us."""
    parents = {pid: parent for pid, parent, _ in living()}
    found, pid = set(), os.getpid()
    while pid and pid not in found:
        found.add(pid)
        pid = parents.get(pid, 0)
    return found


def _wait(held: Collection[int]) -> None:
    poll = select.poll()
    for each in held:
        poll.register(each, select.POLLIN)
    left, until = len(held), time.monotonic() + _PAUSE
    while (pause := until - time.monotonic()) > 0:
        for each, _ in poll.poll(pause * 1000):
            poll.unregister(each)
            left -= 1
            if not left:
                return


def _kill_cgroup(path: str) -> None:
    if path:
        with suppress(OSError), open(f"{path}/cgroup.kill", "w", encoding="ascii") as file:
            file.write("1")


def _in_cgroups(launched: Collection[Launched]) -> list[int]:
    """Return the processes in the cgroups of these, dead ones left out as the kernel does."""
    found: list[int] = []
    for each in launched:
        for folder, _, _ in os.walk(each.cgroup) if each.cgroup else ():
            with suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                found += map(int, file)
    return found

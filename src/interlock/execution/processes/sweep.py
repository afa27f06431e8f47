"""Ending processes that nobody watches any more, and knowing when they are gone (Linux).

A pid alone names nobody for good: it is given to others. So a process is known by its pid together
with its start time, or by variables in its environment, which its children inherit wherever they
go. What was recognised is held by a descriptor of it before it is signalled.
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
"""Seconds until the next look, in which somebody may have forked."""


def left(launched: Collection[Launched], marks: Collection[Mapping[str, str]] = ()) -> list[int]:
    """Which of these processes there are, as `sweep` understands it."""
    if sys.platform != "linux":
        return []
    spared, wanted = _ancestors(), _Wanted(launched, marks)
    return [pid for pid, _, group in living() if pid not in spared and wanted.is_met(pid, group)]


def sweep(
    launched: Collection[Launched],
    marks: Collection[Mapping[str, str]] = (),
    patience: float | None = None,
    *,
    just_lost: bool = False,
) -> list[int]:
    """Kill these processes, their groups, and all that have one of the marks as variables.

    Comes back when none is left, or after `patience` seconds with those that are. `just_lost` says
    that they were alive a moment ago: then a group is theirs even if its leader is gone.
    """
    if sys.platform != "linux":
        return _end_groups(launched)
    until = None if patience is None else time.monotonic() + patience
    wanted = _Wanted(launched, marks, just_lost)
    while True:
        for each in launched:
            _kill_cgroup(each.cgroup)
        held = dict(_hold(wanted))
        try:
            if not held:
                break
            for opened in held.values():
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(opened, signal.SIGKILL)
            _wait(held.values())
            if until is not None and time.monotonic() >= until:
                return list(held)
        finally:
            for opened in held.values():
                os.close(opened)
    for each in launched:
        if each.cgroup:
            remove_cgroup(each.cgroup)
    return []


def _end_groups(launched: Collection[Launched]) -> list[int]:
    """Without a process table: of those that were alive a moment ago, end the groups."""
    for each in launched:
        with suppress(ProcessLookupError, PermissionError):
            while each.pid > 1:
                os.killpg(each.pid, signal.SIGKILL)
                select.select([], [], [], _PAUSE)
    return []


class _Wanted:
    """Who is meant: by pid and start time, or by variables."""

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

    def is_met(self, pid: int, group: int) -> bool:
        if self._is_known(pid) or self._is_known(group) or self._is_without_leader(group):
            return True
        if not self._marks:
            return False
        environment = _environment(pid)
        return any(each <= environment for each in self._marks)

    def _is_known(self, pid: int) -> bool:
        return pid in self._known and start_ticks(pid) == self._known[pid]

    def _is_without_leader(self, group: int) -> bool:
        """Whether this is the group of one of them that was buried.

        While a group has members, no new process gets its number; so only after a long time could
        it be the group of another that has come and gone.
        """
        return self._just_lost and group in self._known and not start_ticks(group)


def _hold(wanted: _Wanted) -> Iterator[tuple[int, int]]:
    """The processes that are meant, each with a descriptor of it."""
    spared = _ancestors()
    for pid, _, group in living():
        if pid in spared or not wanted.is_met(pid, group):
            continue
        with suppress(OSError):
            opened = os.pidfd_open(pid)
            if wanted.is_met(pid, group):  # and not another one by now
                yield pid, opened
            else:
                os.close(opened)


def _environment(pid: int) -> frozenset[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return frozenset(file.read().split(b"\0"))
    except OSError:  # somebody else's, or gone
        return frozenset()


def _ancestors() -> set[int]:
    """Ourselves and those we come from: we may have been started by an agent."""
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
    while left and (pause := until - time.monotonic()) > 0:
        for each, _ in poll.poll(pause * 1000):
            poll.unregister(each)
            left -= 1


def _kill_cgroup(path: str) -> None:
    if path:
        with suppress(OSError), open(f"{path}/cgroup.kill", "w", encoding="ascii") as file:
            file.write("1")

"""The half of an agent's process that never runs any of its code: it watches, and cleans up.

The process that the runtime starts forks before any code of the user has run, while it has one
thread. One half runs the agent, in a process group of its own. The other one, this, waits for the
agent to end or for the runtime to say so (or to die), and then sees to it that nothing is left: it
adopts what the agent's processes leave behind (Linux), so that it knows when all are gone. It is
the only one that signals by pid, and only pids that it has not reaped yet.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

from interlock.execution.process_table import children

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SWEEP = 0.02
"""Seconds between two looks at who has been adopted: nothing tells us of an adoption."""

_LONGEST_GRACE = 1_000_000.0


def die_with_parent(sig: int) -> None:
    """Be sent a signal when the parent dies. Elsewhere than on Linux only the pipe tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)


class Supervisor:
    """Made before the fork; `watch` is for the parent, `leave` for the child."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._deadline: float | None = None
        self._told = False
        self._unread = b""
        self._wakened, self._waker = os.pipe()
        os.set_blocking(self._wakened, False)
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._orphaned)
        self.pid = os.getpid()
        if sys.platform == "linux":
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        die_with_parent(signal.SIGTERM)

    def leave(self) -> None:
        """Undo in the forked child what belongs to the supervisor."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for fd in (self._control, self._wakened, self._waker):
            os.close(fd)

    def watch(self, agent: int) -> int:
        """Wait until nothing is left of the agent; the exit code of the supervisor."""
        with suppress(OSError):  # both do it, so that it is done whoever comes first
            os.setpgid(agent, agent)
        listening = True
        while (status := self._reap(agent)) is None:
            listening = self._wait(listening)
            if not self._told and self._deadline is not None:
                self._told = True
                _signal(agent, signal.SIGTERM)
            if self._deadline is not None and self._deadline <= time.monotonic():
                self._deadline = None
                _signal(agent, signal.SIGKILL)
        with suppress(OSError):  # nobody listens any more
            os.write(self._control, b"%d\n" % status)
        self._sweep(agent)
        return 0

    def _orphaned(self, *_: object) -> None:
        self._told, self._deadline = True, 0.0

    def _wait(self, listening: bool) -> bool:
        """Until something happens; whether the runtime is still there."""
        poll = select.poll()
        poll.register(self._wakened, select.POLLIN)
        if listening:
            poll.register(self._control, select.POLLIN)
        left = None
        if self._deadline is not None:
            left = max(0.0, self._deadline - time.monotonic()) * 1000 + 1
        ready = {fd for fd, _ in poll.poll(left)}
        if self._wakened in ready:
            with suppress(BlockingIOError):
                while os.read(self._wakened, 1024):
                    pass
        if self._control not in ready:
            return listening
        try:
            said = os.read(self._control, 4096)
        except OSError:
            said = b""
        if not said:
            self._orphaned()
            return False
        *graces, self._unread = (self._unread + said).split(b"\n")
        for grace in graces:
            until = time.monotonic() + min(float(grace), _LONGEST_GRACE)
            self._deadline = until if self._deadline is None else min(until, self._deadline)
        return True

    def _reap(self, agent: int) -> int | None:
        """The exit status of the agent, if it has ended; its group is killed by then."""
        if hasattr(os, "waitid"):  # not on macOS before Python 3.13
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, agent, how) is None:
                self._bury_adopted(agent, how)
                return None
            # While it is not reaped, no other process or group can have its number.
            _signal(agent, signal.SIGKILL)
        pid, status = os.waitpid(agent, os.WNOHANG)
        return status if pid else None

    def _bury_adopted(self, agent: int, how: int) -> None:
        while (child := os.waitid(os.P_ALL, 0, how)) is not None and child.si_pid != agent:
            os.waitpid(child.si_pid, 0)

    def _sweep(self, agent: int) -> None:
        """Kill what is left, and wait until it is gone."""
        while _is_anything_left(agent):
            poll = select.poll()
            poll.register(self._wakened, select.POLLIN)
            poll.poll(_SWEEP * 1000)
            with suppress(BlockingIOError):
                os.read(self._wakened, 1024)


def _is_anything_left(agent: int) -> bool:
    if sys.platform != "linux":
        try:
            os.killpg(agent, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # none, or only dead ones
            return False
        return True
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    for child in children(os.getpid()):
        _signal_one(child, signal.SIGKILL)
    return True


def _signal(agent: int, sig: int) -> None:
    """Signal the group of an agent that is not reaped yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(agent, sig)
    if sig == signal.SIGKILL:  # it may have joined another group
        _signal_one(agent, sig)


def _signal_one(pid: int, sig: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sig)

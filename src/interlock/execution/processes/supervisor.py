"""The supervisor of an agent: a process that runs none of the agent's code, watches and cleans up.

The process that the runtime starts forks before any code of the user has run, while it has one
thread. One half becomes the agent, in a process group of its own. The other half, the supervisor,
waits until the agent ends, the runtime tells it to stop, or the runtime dies; then it makes sure
that nothing of the agent is left. Only the supervisor signals by pid, and only pids that it has not
reaped: no other process can have been given such a number.

It imports as little as possible, because every start waits for it.
"""

from __future__ import annotations

import os
import select
import sys
import time

from interlock.execution.processes.containment import (
    CGROUP,
    GROUP,
    NAMESPACE,
    SUBREAPER,
    Cgroup,
    adopt,
    die_with_parent,
    tell_launched,
)
from interlock.system.process_table import children, members

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # as in `containment`

_SWEEP = 0.02
"""Seconds between two looks for adopted processes: the system does not announce an adoption."""

_LONGEST_GRACE = 1_000_000.0

USUAL = SUBREAPER if sys.platform == "linux" else GROUP
"""The containment that every process of this system can use, and that no agent notices."""


class Supervisor:
    """Made before the fork (`split`).

    In a namespace it is the first process: when it ends, so do all others.
    """

    def __init__(self, control: int, containment: str = USUAL) -> None:
        self._control = control
        self._containment = containment
        self._cgroup = Cgroup() if containment == CGROUP else None
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
        if containment in (SUBREAPER, CGROUP):
            adopt()
        if containment != NAMESPACE:
            die_with_parent(signal.SIGTERM)

    def split(self, *not_ours: int) -> None:
        """Fork. Returns in the half that is to be the agent, with SIGTERM blocked.

        `not_ours` are descriptors that only the agent's half needs.
        """
        # A signal to the agent must not reach it before it has a handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        agent = os.fork()
        if agent:
            code = 1
            try:
                for each in not_ours:
                    os.close(each)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
                code = self._watch(agent)
            finally:
                os._exit(code)  # no cleanup of the interpreter: this half is only a supervisor
        os.setpgid(0, 0)
        die_with_parent(signal.SIGKILL)
        if os.getppid() != self.pid:
            os._exit(1)
        if self._cgroup is not None:
            self._cgroup.join()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(self._wakened)
        os.close(self._waker)

    def _watch(self, agent: int) -> int:
        """Wait until nothing of the agent is left; return the exit code of the supervisor."""
        _quietly(os.setpgid, agent, agent)  # both halves do it: either may come first
        if self._containment != NAMESPACE:
            tell_launched(self._control, agent, self._cgroup.path if self._cgroup else "")
        listening = True
        while (status := self._reap(agent)) is None:
            listening = self._wait(listening)
            if not self._told and self._deadline is not None:
                self._told = True
                _signal(agent, signal.SIGTERM)
            if self._deadline is not None and self._deadline <= time.monotonic():
                self._deadline = None
                _signal(agent, signal.SIGKILL)
        _quietly(os.write, self._control, b"%d\n" % status)
        self._sweep(agent)
        return 0

    def _orphaned(self, *_: object) -> None:
        self._told, self._deadline = True, 0.0

    def _wait(self, listening: bool) -> bool:
        """Wait until something happens; return whether the runtime is still alive."""
        poll = select.poll()
        poll.register(self._wakened, select.POLLIN)
        if listening:
            poll.register(self._control, select.POLLIN)
        left = None
        if self._deadline is not None:
            left = max(0.0, self._deadline - time.monotonic()) * 1000 + 1
        ready = {fd for fd, _ in poll.poll(left)}
        if self._wakened in ready:
            self._drain()
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

    def _drain(self) -> None:
        try:
            while os.read(self._wakened, 1024):
                pass
        except BlockingIOError:
            return

    def _reap(self, agent: int) -> int | None:
        """Return the wait status of the agent if it has ended; its group has been killed then."""
        if hasattr(os, "waitid"):  # not on macOS before Python 3.13
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, agent, how) is None:
                self._reap_adopted(agent, how)
                return None
            # As long as it is not reaped, no other process or group can have its number.
            _signal(agent, signal.SIGKILL)
            if self._containment == GROUP:
                self._empty(agent)
        pid, status = os.waitpid(agent, os.WNOHANG)
        return status if pid else None

    def _reap_adopted(self, agent: int, how: int) -> None:
        while (child := os.waitid(os.P_ALL, 0, how)) is not None and child.si_pid != agent:
            os.waitpid(child.si_pid, 0)

    def _empty(self, agent: int) -> None:
        """Kill what is in the agent's group, until it is empty."""
        while _is_group_alive(agent):
            self._pause()

    def _sweep(self, agent: int) -> None:
        """Kill what is left, and wait until it has ended."""
        if self._containment == GROUP and not hasattr(os, "waitid"):
            self._empty(agent)
        while self._containment in (SUBREAPER, CGROUP) and self._is_anything_left():
            self._pause()
        if self._cgroup is not None:
            self._cgroup.remove()

    def _is_anything_left(self) -> bool:
        if self._cgroup is not None:
            self._cgroup.kill()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return self._cgroup is not None and not self._cgroup.is_empty()
        for child in children(os.getpid()):
            _quietly(os.kill, child, signal.SIGKILL)
        return True

    def _pause(self) -> None:
        poll = select.poll()
        poll.register(self._wakened, select.POLLIN)
        poll.poll(_SWEEP * 1000)
        self._drain()


def _is_group_alive(group: int) -> bool:
    """Kill the members of a group; return whether it had any that were alive."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # no members, or only dead ones
        return False
    return sys.platform != "linux" or bool(members(group))


def _signal(agent: int, sig: int) -> None:
    """Signal the group of an agent that has not been reaped."""
    _quietly(os.killpg, agent, sig)
    if sig == signal.SIGKILL:  # the agent may have joined another group
        _quietly(os.kill, agent, sig)


def _quietly(call: object, *args: object) -> None:
    """Call something that may be impossible by now: the process or the reader has ended."""
    try:
        call(*args)  # type: ignore[operator]
    except OSError:
        return

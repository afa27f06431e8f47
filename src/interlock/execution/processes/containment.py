"""How an agent's processes are kept together, so that all of them can be ended, and known to be.

    namespace   a PID namespace: when its first process ends, the kernel ends all others
    cgroup      a control group (v2): `cgroup.kill` ends all in it, and it says when it is empty
    subreaper   what an agent's processes leave behind is adopted by the supervisor (Linux)
    group       the process group alone: who leaves it is not found again

This is code of the supervisor: it imports next to nothing, because every start waits for it.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time

from interlock.system.process_table import start_ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # `signal` makes enums of it, which takes as long as all the rest

NAMESPACE = "namespace"
CGROUP = "cgroup"
SUBREAPER = "subreaper"
GROUP = "group"

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_SLAVE = 2, 4, 8, 1 << 14, 1 << 19

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sig: int) -> None:
    """Be sent a signal when the parent dies. Elsewhere than on Linux only the pipe tells."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)


def adopt() -> None:
    """Become the parent of whatever the processes below us leave behind."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def be_private() -> None:
    """Let no other process of the same user look into this one: its memory, its variables.

    Nobody can trace it any more, and it leaves no core dump. What it executes is as usual again.
    """
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def enter_namespace(tell_of: int) -> None:
    """Go on as the first process of a new PID namespace, with a /proc that shows it.

    It is a fork that goes on. Whoever called stays outside, writes into `tell_of` who was
    launched, and ends when nothing is left of the namespace. If it is killed, so are all in it.
    """
    user, group = os.geteuid(), os.getegid()
    ordinary = user != 0
    _checked(_libc.unshare(_CLONE_NEWPID | (_CLONE_NEWUSER if ordinary else 0)))
    if ordinary:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    outside, held = os.pipe()
    first = os.fork()
    if first:
        os.close(outside)
        _wait_outside(first, tell_of)
    os.close(held)
    die_with_parent(signal.SIGKILL)
    poll = select.poll()
    poll.register(outside, 0)
    if poll.poll(0):  # the other end is closed: who was to watch us is gone already
        os._exit(1)
    _checked(_libc.unshare(_CLONE_NEWNS))  # not before: outside, /proc is to stay what it is
    _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None))
    _checked(_libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def _wait_outside(first: int, tell_of: int) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        die_with_parent(signal.SIGTERM)
        tell_launched(tell_of, first)
        # The first process of a namespace is dead when all others are, and no sooner.
        _, status = os.waitpid(first, 0)
        code = 0 if status == 0 else 1
    finally:
        os._exit(code)


def tell_launched(control: int, pid: int, cgroup: str = "") -> None:
    """Say who has to be killed if we cannot do it any more. It is not reaped yet."""
    try:
        os.write(control, f"launched {pid} {start_ticks(pid)} {cgroup}\n".encode())
    except OSError:
        return  # nobody listens any more; that is noticed elsewhere


class Cgroup:
    """A control group of its own, below the one that we are in."""

    def __init__(self) -> None:
        self.path = f"{_own_cgroup()}/interlock-{os.getpid()}-{time.monotonic_ns()}"
        os.mkdir(self.path)

    def join(self) -> None:
        """Bring in the process that calls this, and all that it will start."""
        _write(f"{self.path}/cgroup.procs", "0")

    def kill(self) -> None:
        """End all that is in it."""
        _write(f"{self.path}/cgroup.kill", "1")

    def is_empty(self) -> bool:
        """Whether nothing runs in it."""
        with open(f"{self.path}/cgroup.events", "rb") as file:
            return b"populated 0" in file.read()

    def remove(self) -> None:
        """Do away with it."""
        remove_cgroup(self.path)


def remove_cgroup(path: str) -> None:
    """Remove a group with the groups that were made in it, as far as they are empty."""
    try:
        for each in os.listdir(path):
            if os.path.isdir(f"{path}/{each}"):
                remove_cgroup(f"{path}/{each}")
        os.rmdir(path)
    except OSError:
        return  # an empty folder more; nothing runs in it


def _own_cgroup() -> str:
    """The folder of the group that this process is in."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        inside = next((each[3:].rstrip() for each in file if each.startswith("0::")), "")
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        mounts = [each.split() for each in file]
    where = next((each[1] for each in mounts if each[2] == "cgroup2"), "")
    if not inside or not where or ".." in inside:
        raise OSError("there is no control group (v2) that this process is in")
    return where + inside.rstrip("/")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

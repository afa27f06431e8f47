"""How the processes of an agent are kept together, so that all of them can be ended for certain.

    namespace   a PID namespace: when its first process ends, the kernel ends all others
    cgroup      a control group (v2): `cgroup.kill` ends all in it, and it reports when it is empty
    subreaper   the supervisor adopts the processes that an agent orphans (Linux)
    group       the process group alone: a process that leaves it is not found again

This runs in the supervisor. It imports as little as possible, because every start waits for it.
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
    import _signal as signal  # `signal` makes enums of it, which doubles the time of this import

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
    """Have the kernel send this process a signal when its parent dies (Linux only)."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)


def adopt() -> None:
    """Become the parent of all orphans below this process."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def be_private() -> None:
    """Keep other processes of the same user from reading this one's memory and variables.

    It can no longer be traced, and leaves no core dump. A program that it executes is not affected.
    """
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def enter_namespace(tell_of: int) -> None:
    """Continue as the first process of a new PID namespace, with a /proc that shows it.

    The process forks: the child continues. The parent stays outside, writes into `tell_of` which
    process was launched, and exits when nothing is left of the namespace. If the parent is killed,
    everything in the namespace is killed.
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
    if poll.poll(0):  # the other end is closed: the parent has died already
        os._exit(1)
    # Not earlier: outside of the namespace /proc has to stay what it is.
    _checked(_libc.unshare(_CLONE_NEWNS))
    _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None))
    _checked(_libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def _wait_outside(first: int, tell_of: int) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
        die_with_parent(signal.SIGTERM)
        tell_launched(tell_of, first)
        # The first process of a namespace is reaped only when all others are dead.
        _, status = os.waitpid(first, 0)
        code = 0 if status == 0 else 1
    finally:
        os._exit(code)


def tell_launched(control: int, pid: int, cgroup: str = "") -> None:
    """Report the process that has to be killed if we no longer can. It is not reaped yet."""
    try:
        os.write(control, f"launched {pid} {start_ticks(pid)} {cgroup}\n".encode())
    except OSError:
        return  # the runtime has died; `Supervisor._wait` notices that


class Cgroup:
    """A new control group, below the one that this process is in."""

    def __init__(self) -> None:
        self.path = f"{_own_cgroup()}/interlock-{os.getpid()}-{time.monotonic_ns()}"
        os.mkdir(self.path)

    def join(self) -> None:
        """Move the calling process into it, with all that it will start."""
        _write(f"{self.path}/cgroup.procs", "0")

    def kill(self) -> None:
        """Kill everything in it."""
        _write(f"{self.path}/cgroup.kill", "1")

    def is_empty(self) -> bool:
        """Whether nothing runs in it."""
        with open(f"{self.path}/cgroup.events", "rb") as file:
            return b"populated 0" in file.read()

    def remove(self) -> None:
        """Remove it."""
        remove_cgroup(self.path)


def remove_cgroup(path: str) -> None:
    """Remove a group and the groups inside it, as far as they are empty."""
    try:
        for each in os.listdir(path):
            if os.path.isdir(f"{path}/{each}"):
                remove_cgroup(f"{path}/{each}")
        os.rmdir(path)
    except OSError:
        return  # an empty group stays; nothing runs in it


def _own_cgroup() -> str:
    """Return the folder of the group that this process is in."""
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

"""Starting the supervisor of a program, in the strongest containment that works here."""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from interlock.errors import AgentFailed
from interlock.execution.processes.containment import (
    CGROUP,
    GROUP,
    NAMESPACE,
    SUBREAPER,
    be_private,
)
from interlock.execution.processes.shortage import is_shortage
from interlock.execution.processes.supervised_attempt import SupervisorMessages

CONTAINMENTS = (NAMESPACE, CGROUP, SUBREAPER, GROUP)
"""The strongest first."""
CHOICE = "INTERLOCK_CONTAINMENT"
"""The variable that names the containment to use instead of the strongest one."""

_ROOT = str(Path(__file__).parents[3])
_BOOT = """import sys
for name in ("", ".system", ".execution", ".execution.processes", ".execution.commands"):
    # Packages without the code of their __init__: it would take longer than all other imports.
    package = sys.modules["interlock" + name] = type(sys)("interlock" + name)
    package.__path__ = [sys.argv[1] + "/interlock" + name.replace(".", "/")]
from interlock.execution.commands.command_child import main
main(*map(int, sys.argv[2:]))
"""
_ITS_OWN = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
_LONGEST_TRY = 10.0


class ProgramCall(NamedTuple):
    """What is to be run, encoded for the system. No arguments: only try the containment."""

    containment: str
    folder: bytes
    argv: list[bytes]
    env: dict[bytes, bytes]
    files: int = 0
    """How many descriptors it may have; 0: as many as this process."""


def launch(
    call: ProgramCall,
    control: socket.socket,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    marks: Mapping[str, str] = MappingProxyType({}),
    lock: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a supervisor, which starts the program. Neither sees a variable that it is not given.

    The supervisor is a bare interpreter (no site, no variables, no user folder). Its start is most
    of the 15 ms that a program takes to start. A fork server would take 2 ms, and be one more
    process that can die; agents run for seconds at least.
    """
    if call.argv and call.containment != NAMESPACE:
        be_private()  # a program that sees this process could read its variables in /proc
    reader, writer = os.pipe()
    try:
        fds = [control.fileno(), reader, *([] if lock is None else [lock])]
        supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, _ROOT, *map(str, fds)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=fds,
            start_new_session=True,  # Ctrl-C is for us: we tell the agents
            cwd="/",
            env={name: value for name, value in os.environ.items() if name in _ITS_OWN}
            | dict(marks),
        )
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    try:
        with open(writer, "wb") as file:
            file.write(marshal.dumps(tuple(call)))
    except BrokenPipeError:
        pass  # it has died; the caller that follows it finds out how
    return supervisor


_chosen: dict[str, str] = {}
"""The containment to use, by the value of the variable."""
_choosing = threading.Lock()


def choose_containment() -> str:
    """Return the containment to use, found out once by trying.

    For an ordinary user a PID namespace comes with a user namespace, in which root's files belong
    to the user `nobody`: sudo does not work there, nor does ssh with settings in
    /etc/ssh/ssh_config.d. So it is used if the variable asks for it, and otherwise only by root.
    """
    wanted = os.environ.get(CHOICE, "")
    with _choosing:
        if wanted not in _chosen:
            _chosen[wanted] = _first_that_works(wanted)
        return _chosen[wanted]


def _first_that_works(wanted: str) -> str:
    if wanted:
        if wanted not in CONTAINMENTS:
            raise AgentFailed(
                f"{CHOICE} is {wanted!r}; it can be {', '.join(CONTAINMENTS)}", retryable=False
            )
        if not works(wanted):
            raise AgentFailed(
                f"{CHOICE} asks for {wanted!r}, which this system does not allow", retryable=False
            )
        return wanted
    for each in CONTAINMENTS:
        if (each != NAMESPACE or os.geteuid() == 0) and works(each):
            return each
    return GROUP


def works(containment: str) -> bool:
    """Try a containment: a process that does all it can to escape must end with its supervisor."""
    if containment == GROUP:
        return True
    if sys.platform != "linux":
        return False
    held, hold = os.pipe()
    try:
        control, theirs = socket.socketpair()
        with control:
            with theirs:
                call = ProgramCall(containment, b"/", [], {})
                nothing = subprocess.DEVNULL
                supervisor = launch(call, theirs, nothing, hold, nothing)
            os.close(hold)
            hold = -1
            try:
                worked = supervisor.wait(_LONGEST_TRY) == 0
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
                return False
            messages = SupervisorMessages()
            while said := control.recv(4096):
                messages.take(said)
        os.set_blocking(held, False)
        # Every process that was started had the other end of this pipe: its end means that none is
        # left.
        return worked and messages.status == 0 and os.read(held, 1) == b""
    except OSError as error:
        if is_shortage(error.errno):
            raise  # a shortage says nothing about the containment
        return False
    finally:
        os.close(held)
        if hold >= 0:
            os.close(hold)

"""The process of a program, from its first line: one half supervises, one becomes the program.

It runs in a bare interpreter and imports as little as possible, because every start waits for it.
"""

from __future__ import annotations

import marshal
import os
import resource

from interlock.execution.processes.containment import NAMESPACE, enter_namespace
from interlock.execution.processes.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # as in `containment`


def main(control: int, call: int, *locks: int) -> None:
    """Run a program. `control` leads to the supervisor; a `ProgramCall` is read from `call`.

    `locks` are held by being open, for as long as the supervisor runs.
    """
    for each in (control, *locks):
        os.set_inheritable(each, False)
    containment, folder, argv, env, files = _read(call)
    if containment == NAMESPACE:
        enter_namespace(control)
    supervisor = Supervisor(control, containment)
    supervisor.split()
    if not argv:
        _try(containment)
    if files:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    _become(control, folder, argv, env)


def _read(call: int) -> tuple[str, bytes, list[bytes], dict[bytes, bytes], int]:
    with open(call, "rb") as file:
        containment, folder, argv, env, files = marshal.loads(file.read())
    return containment, folder, argv, env, files


def _become(control: int, folder: bytes, argv: list[bytes], env: dict[bytes, bytes]) -> NoReturn:
    """Replace this process by the program; or report why that cannot be done."""
    step = "enter"
    try:
        os.chdir(folder)
        step = "run"
        # Undo what Python has set for itself: a program expects the defaults.
        for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(control, f"failed {error.errno} {step}\n".encode())
    finally:
        os._exit(127)


def _try(containment: str) -> NoReturn:
    """Try a containment: leave a process behind that does all it can to escape."""
    is_at_home = containment != NAMESPACE or os.readlink("/proc/self") == str(os.getpid())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.alarm(60)  # if it escapes, it must not stay for ever
            while True:
                signal.pause()
        os._exit(0)
    os.wait()
    os._exit(0 if is_at_home else 1)

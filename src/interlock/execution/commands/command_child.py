"""The process of a command, from its first line: one half watches, the other becomes the program.

It is run by a bare interpreter, and imports next to nothing, because every start waits for it.
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
    """`control` leads to the supervisor; `call` says what to run, and in which containment.

    `locks` are held by being open, as long as the supervisor is there.
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
    """Run the program in the place of this process; or say why it cannot be."""
    step = "enter"
    try:
        os.chdir(folder)
        step = "run"
        # What Python has set for itself; a program expects what every program has.
        for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(control, f"failed {error.errno} {step}\n".encode())
    finally:
        os._exit(127)


def _try(containment: str) -> NoReturn:
    """Leave a process behind that has done all it can to get away, to see whether it is found."""
    is_at_home = containment != NAMESPACE or os.readlink("/proc/self") == str(os.getpid())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.alarm(60)  # where it is not found, it is not to stay for ever
            while True:
                signal.pause()
        os._exit(0)
    os.wait()
    os._exit(0 if is_at_home else 1)

"""A program that does all it can to outlive its end.

Its arguments: how it ends, a FIFO to announce itself at, one that all its processes keep open.
"""

from __future__ import annotations

import os
import signal
import sys

DEAF = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def hold(fifo: str) -> None:
    os.set_inheritable(os.open(fifo, os.O_WRONLY), True)


def deaf() -> None:
    for each in DEAF:
        signal.signal(each, signal.SIG_IGN)


def stay() -> None:
    while True:
        signal.pause()


def child(*steps: str) -> None:
    """A process that is there, and has done its steps, when this returns."""
    there, say = os.pipe()
    if os.fork() == 0:
        os.close(there)
        deaf()
        if "setsid" in steps:
            os.setsid()
        if "double" in steps and os.fork():
            os._exit(0)
        if "exec" in steps:
            # Without a variable that would tell whose it is.
            os.set_inheritable(say, True)
            script = f"trap '' TERM HUP INT; exec {say}>&-; while :; do sleep 1000; done"
            os.execve("/bin/sh", ["sh", "-c", script], {"PATH": "/usr/bin:/bin"})
        os.close(say)
        stay()
    os.close(say)
    os.read(there, 1)
    os.close(there)


def chain(depth: int) -> None:
    """Each process has one below it, in a session of its own."""
    there, say = os.pipe()
    top = os.getpid()
    for _ in range(depth):
        if os.fork():
            break
        deaf()
        os.setsid()
    os.close(say)
    if os.getpid() != top:
        stay()
    os.read(there, 1)
    os.close(there)


def main(how: str, announce: str, held: str) -> None:
    hold(held)
    child()
    child("setsid")
    child("setsid", "double")
    child("setsid", "double", "exec")
    if how == "deaf":
        deaf()
    with open(announce, "w", encoding="ascii") as file:
        file.write("ready")
    if how != "leave":
        stay()


if __name__ == "__main__":
    main(*sys.argv[1:])

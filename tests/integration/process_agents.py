"""Agents that misbehave, for the tests of `interlock.process()`."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from interlock.execution.processes.process_agent import process
from tests.unit.execution.agents import announce


class Unpicklable(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class Needy(Exception):
    """Can be pickled, but not unpickled: its second argument is lost on the way."""

    def __init__(self, text: str, more: str) -> None:
        super().__init__(f"{text} and {more}")


class Bomb:
    """Pickles, and ends whoever unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.exit, ("boom",)


def big(size: int) -> bytes:
    return b"x" * size


def length(data: bytes) -> int:
    return len(data)


def result_that_cannot_be_sent() -> object:
    return threading.Lock()


def result_that_cannot_be_read() -> object:
    return Bomb()


def raise_unpicklable() -> NoReturn:
    raise Unpicklable("with a lock")


def raise_needy() -> NoReturn:
    raise Needy("this", "that")


def out_of_memory() -> NoReturn:
    raise MemoryError("in a process of its own")


def leave_at_once(code: int) -> NoReturn:
    os._exit(code)


def kill_self(sig: int) -> None:
    signal.signal(sig, signal.SIG_DFL) if sig != signal.SIGKILL else None
    os.kill(os.getpid(), sig)
    signal.pause()


def fork_and_return() -> int:
    """The classic mistake: the child returns as well, and first."""
    child = os.fork()
    if child == 0:
        return -1
    os.waitpid(child, 0)
    return 1


def write_garbage(garbage: bytes) -> str:
    """Write into every descriptor that is a socket."""
    for fd in range(3, 64):
        try:
            socket.socket(fileno=os.dup(fd)).close()
            os.write(fd, garbage)
        except OSError:
            continue
    return "an answer"


def close_everything() -> str:
    os.closerange(3, 256)
    return "an answer"


def clean_up(fifo: str, mark: str) -> None:
    try:
        announce(fifo)
        signal.pause()
    finally:
        Path(mark).write_text("cleaned up")


async def clean_up_on_a_loop(fifo: str, mark: str) -> None:
    try:
        announce(fifo)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)  # still a living loop
        Path(mark).write_text("cleaned up")
        raise


def resist(fifo: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    announce(fifo)
    while True:
        signal.pause()


def change_group(fifo: str) -> None:
    os.setpgid(0, os.getppid())
    announce(fifo)
    signal.pause()


def stop_the_supervisor(fifo: str) -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    resist(fifo)


def have_children(fifo: str) -> None:
    """A child, a grandchild, a fork without exec and one in a session of its own; all resist."""
    _tell(fifo, _children())
    signal.pause()


def leave_children(fifo: str) -> str:
    """Return while they run."""
    _tell(fifo, _children())
    return "done"


def die_with_children(fifo: str) -> None:
    _tell(fifo, _children())
    os.kill(os.getpid(), signal.SIGKILL)


_RESIST = "trap '' TERM HUP; echo $$; sleep 1000 & echo $!; wait; wait"


def _children() -> list[int]:
    found = []
    for own_session in (False, True):
        child = subprocess.Popen(
            ["sh", "-c", _RESIST],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=own_session,
        )
        assert child.stdout is not None
        found += [int(child.stdout.readline()), int(child.stdout.readline())]
    forked = os.fork()
    if forked == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    return [*found, forked]


def _tell(fifo: str, pids: list[int]) -> None:
    Path(fifo).write_text(" ".join(map(str, [os.getpid(), os.getppid(), *pids])))


def say_goodbye(mark: str) -> str:
    atexit.register(Path(mark).write_text, "goodbye")
    return "done"


def linger(fifo: str) -> str:
    """Return, but leave a thread behind that keeps the process."""
    threading.Thread(target=announce, args=(fifo,)).start()
    return "done"


def say(text: str) -> None:
    print(text)
    print(text, file=sys.stderr)


@process
def decorated(number: int) -> int:
    return number + 1

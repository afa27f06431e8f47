"""An attempt in processes of its own, as seen from the runtime's process.

`FunctionAttempt` and `CommandAttempt` are the two kinds; this is what they share.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from interlock.execution.backend import AttemptJob, Launched
from interlock.execution.ending import Ending, raised
from interlock.execution.processes.shortage import Made, retry_while_short
from interlock.system.file_locks import FileLock

_CHUNK = 1 << 16


class AttemptReports(Protocol):
    """Receives the reports of an attempt, on the attempt's own thread."""

    def launched(self, job: AttemptJob, launched: Launched) -> None:
        """Its process has started."""

    def ended(self, job: AttemptJob, ending: Ending) -> None:
        """It has ended, and something of it still runs."""

    def over(self, job: AttemptJob, ending: Ending | None) -> None:
        """Nothing of it runs any more; with its ending, unless that was reported before."""


class SupervisorLink(NamedTuple):
    """A supervisor that was started, and the socket that leads to it."""

    supervisor: subprocess.Popen[bytes]
    control: socket.socket


class SupervisedAttempt:
    """A thread that starts a process, talks to it, and waits until nothing of it runs any more.

    It has to be a thread of its own: starting, pickling and waiting all block, and on Linux a
    process that is to die with its parent dies when the *thread* that started it ends.
    """

    def __init__(self, job: AttemptJob, reports: AttemptReports) -> None:
        self.job = job
        self.reports = reports
        self.has_ended = False
        """Whether its ending has been reported."""
        self._lock = threading.Lock()
        self._grace: float | None = None
        """The seconds that it has to stop, once it has been told to."""
        self._stop = threading.Event()
        self._link: SupervisorLink | None = None
        """The supervisor that runs now; a command with a check has two, one after the other."""
        self._thread = threading.Thread(target=self._run, name=job.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self, grace: float) -> None:
        """Tell the process to stop, and kill it after the grace. Never blocks."""
        with self._lock:
            self._grace = grace if self._grace is None else min(grace, self._grace)
            self._stop.set()
            self._tell_supervisor()

    def do_without_supervisor(self) -> None:
        """Kill a supervisor that does not obey; then the attempt cleans up from here."""
        with self._lock:
            if self._link is not None:
                self._link.supervisor.kill()

    @property
    def was_told(self) -> bool:
        """Whether it has been told to stop."""
        return self._grace is not None

    def run_to_end(self) -> Ending | None:
        """Run the attempt until it is gone; return its ending, unless that was reported."""
        raise NotImplementedError

    @contextmanager
    def supervised(
        self, launch: Callable[[socket.socket], subprocess.Popen[bytes]]
    ) -> Iterator[SupervisorLink]:
        """Start a supervisor for the length of a block. It has ended when the block is left."""
        link = self.retry_while_short(partial(self._launched, launch))
        with link.control:
            with self._lock:
                self._link = link
                self._tell_supervisor()
            try:
                yield link
            finally:
                with self._lock:
                    self._link = None
                # This ends the supervisor also if a bug of ours brought us here.
                link.control.close()
                link.supervisor.wait()

    def retry_while_short(self, make: Callable[[], Made]) -> Made:
        """Make something, waiting while the system is short of resources; or until told to stop."""
        return retry_while_short(make, self._stop.wait)

    def _launched(
        self, launch: Callable[[socket.socket], subprocess.Popen[bytes]]
    ) -> SupervisorLink:
        control, theirs = socket.socketpair()
        try:
            with theirs:
                if self.was_told:
                    raise asyncio.CancelledError("the agent was told to stop before it started")
                return SupervisorLink(launch(theirs), control)
        except BaseException:
            control.close()
            raise

    def _tell_supervisor(self) -> None:
        if self._link is not None and self._grace is not None:
            with suppress(OSError):  # it has ended, or its buffer is full of earlier requests
                self._link.control.send(b"%r\n" % self._grace, socket.MSG_DONTWAIT)

    def _run(self) -> None:
        last: Ending | None
        try:
            last = self.run_to_end()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the job's ending
            last = None if self.has_ended else raised(error)
        self.reports.over(self.job, last)


@contextmanager
def inheritable_lock(lock: Path | None) -> Iterator[int | None]:
    """Open a descriptor with a shared lock, for a supervisor to inherit as it starts.

    Only supervisors keep it: a lock that is held tells a later coordinator that one is left.
    """
    if lock is None:
        yield None
        return
    with closing(FileLock(lock)) as shared:
        shared.acquire(shared=True)
        yield shared.fileno()


class SupervisorMessages:
    """What a supervisor has reported so far, line by line."""

    def __init__(self) -> None:
        self.pid = 0
        """The process that has to be killed for all to end; in a namespace its first one."""
        self.started = 0
        self.cgroup = ""
        self.status: int | None = None
        """How the agent ended, as the wait status of the system."""
        self.failure: tuple[int, str] | None = None
        """Why the agent was not started: an error number, and the step that failed."""
        self._unread = b""

    def take(self, said: bytes) -> bool:
        """Take in more bytes; return whether they say that the process has started."""
        had = self.pid
        *lines, self._unread = (self._unread + said).split(b"\n")
        for line in lines:
            word, *rest = line.decode("utf-8", "surrogateescape").split(" ", 3)
            if word == "launched":
                self.pid, self.started, self.cgroup = int(rest[0]), int(rest[1]), rest[2]
            elif word == "failed":
                self.failure = int(rest[0]), rest[1]
            else:
                self.status = int(word)
        return self.pid != had


def receive(connection: socket.socket) -> bytes | None:
    """Read what there is; None if there is nothing yet, empty at the end."""
    try:
        return connection.recv(_CHUNK)
    except BlockingIOError:
        return None
    except OSError:  # reset: the other side died with bytes of ours unread
        return b""


def describe_exit(code: int) -> str:
    """Describe how a process ended; `code` is that of the subprocess module."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


def exit_code(status: int) -> int:
    """Convert a wait status to an exit code, or a signal as a negative number."""
    return os.waitstatus_to_exitcode(status)

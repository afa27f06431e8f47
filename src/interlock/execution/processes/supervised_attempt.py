"""An attempt in processes of its own, as seen from the runtime's process; agents differ in how."""

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
from interlock.execution.processes.shortage import Made, patiently
from interlock.system.file_locks import FileLock

_CHUNK = 1 << 16


class AttemptReports(Protocol):
    """Who is told of an attempt; called on its thread."""

    def launched(self, job: AttemptJob, launched: Launched) -> None:
        """Its process is there."""

    def ended(self, job: AttemptJob, ending: Ending) -> None:
        """It has answered, and something of it is left."""

    def over(self, job: AttemptJob, ending: Ending | None) -> None:
        """Nothing is left; the ending, if that is new."""


class SupervisorLink(NamedTuple):
    """A supervisor that was started, and the line to it."""

    supervisor: subprocess.Popen[bytes]
    control: socket.socket


class SupervisedAttempt:
    """A thread that starts a process, speaks with it, and waits until nothing of it is left.

    It has to be a thread: starting, pickling and waiting all block, and on Linux a process that is
    to die with its parent dies when the *thread* ends that has started it.
    """

    def __init__(self, job: AttemptJob, reports: AttemptReports) -> None:
        self.job = job
        self.reports = reports
        self.has_ended = False
        """Whether its ending has been reported."""
        self._lock = threading.Lock()
        self._told: float | None = None
        self._stop = threading.Event()
        self._now: SupervisorLink | None = None
        self._thread = threading.Thread(target=self._run, name=job.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self, grace: float) -> None:
        """Tell the process to stop; kill it when the grace is over. Never blocks."""
        with self._lock:
            self._told = grace if self._told is None else min(grace, self._told)
            self._stop.set()
            self._tell_supervisor()

    def do_without_supervisor(self) -> None:
        """Kill a supervisor that does not do what it is told; then we clean up ourselves."""
        with self._lock:
            if self._now is not None:
                self._now.supervisor.kill()

    @property
    def was_told(self) -> bool:
        """Whether it is to stop."""
        return self._told is not None

    def live(self) -> Ending | None:
        """Run the attempt to its very end; its ending, unless that has been reported."""
        raise NotImplementedError

    @contextmanager
    def supervised(
        self, launch: Callable[[socket.socket], subprocess.Popen[bytes]]
    ) -> Iterator[SupervisorLink]:
        """Start a supervisor. When this is left, it has ended."""
        supervised = self.patiently(partial(self._launched, launch))
        with supervised.control:
            with self._lock:
                self._now = supervised
                self._tell_supervisor()
            try:
                yield supervised
            finally:
                with self._lock:
                    self._now = None
                # If we got here by a bug of ours, this ends the process as well.
                supervised.control.close()
                supervised.supervisor.wait()

    def patiently(self, make: Callable[[], Made]) -> Made:
        """Make something, also if the system is short of what it takes; unless it is to stop."""
        return patiently(make, self._stop.wait)

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
        if self._now is not None and self._told is not None:
            with suppress(OSError):  # it is gone, or has been told a thousand times
                self._now.control.send(b"%r\n" % self._told, socket.MSG_DONTWAIT)

    def _run(self) -> None:
        last: Ending | None
        try:
            last = self.live()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is this job's ending
            last = None if self.has_ended else raised(error)
        self.reports.over(self.job, last)


@contextmanager
def inheritable_lock(lock: Path | None) -> Iterator[int | None]:
    """A descriptor with a shared lock, for a supervisor to inherit: it is locked from the first.

    We do not keep it ourselves. What a dead coordinator's supervisors hold says that they live.
    """
    if lock is None:
        yield None
        return
    with closing(FileLock(lock)) as shared:
        shared.acquire(shared=True)
        yield shared.fileno()


class SupervisorMessages:
    """What a supervisor has said so far, line by line."""

    def __init__(self) -> None:
        self.pid = 0
        """Who has to be killed for all to end; in a namespace its first process."""
        self.started = 0
        self.cgroup = ""
        self.status: int | None = None
        """How the agent ended, as the system says it."""
        self.failure: tuple[int, str] | None = None
        """Why there is no agent: an error number, and what could not be done."""
        self._unread = b""

    def take(self, said: bytes) -> bool:
        """Take in more of it; whether this says that the process is there."""
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
    """What is there; None if nothing is there yet, empty if nothing more will come."""
    try:
        return connection.recv(_CHUNK)
    except BlockingIOError:
        return None
    except OSError:  # reset: it died with our bytes unread
        return b""


def in_words(code: int) -> str:
    """How a process ended, for people; `code` as the subprocess module has it."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


def exit_code(status: int) -> int:
    """An exit code, or a signal as a negative number."""
    return os.waitstatus_to_exitcode(status)

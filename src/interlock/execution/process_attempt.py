"""One attempt in a process of its own, as seen from the runtime's process."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from interlock.errors import NotAnAgent
from interlock.execution import process_main
from interlock.execution.backend import Job
from interlock.execution.ending import Ending, raised
from interlock.execution.process import Process
from interlock.execution.process_inbox import Inbox
from interlock.execution.process_table import members
from interlock.execution.process_wire import frame, pack_call, unpack_ending
from interlock.model.outcome import ErrorRecord, State

_ROOT = str(Path(__file__).parents[2])
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from interlock.execution.process_child import main; "
    "main({control}, {work}, sys.argv[1])"
)
_CHUNK = 1 << 18


class Attempt:
    """A thread that starts a process, speaks with it, and waits until nothing of it is left.

    It has to be a thread: starting, pickling and waiting all block, and on Linux a process that is
    to die with its parent dies when the *thread* ends that has started it.
    """

    def __init__(
        self,
        job: Job,
        ended: Callable[[Job, Ending], None],
        over: Callable[[Job, Ending | None], None],
    ) -> None:
        self._job = job
        self._report_ended = ended
        self._report_over = over
        self._has_ended = False
        self._lock = threading.Lock()
        self._told: float | None = None
        self._control: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name=job.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self, grace: float) -> None:
        """Tell the process to stop; kill it when the grace is over. Never blocks."""
        with self._lock:
            self._told = grace if self._told is None else min(grace, self._told)
            self._tell_supervisor()

    def do_without_supervisor(self) -> None:
        """Kill a supervisor that does not do what it is told; then we clean up ourselves."""
        with self._lock:
            if self._child is not None:
                self._child.kill()

    def _tell_supervisor(self) -> None:
        if self._control is not None and self._told is not None:
            with suppress(OSError):  # it is gone, or has been told a thousand times
                self._control.send(b"%r\n" % self._told, socket.MSG_DONTWAIT)

    def _run(self) -> None:
        last: Ending | None
        try:
            last = self._live()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is this job's ending
            last = None if self._has_ended else raised(error)
        self._report_over(self._job, last)

    def _live(self) -> Ending | None:
        """Run the attempt to its very end; its ending, unless that has been reported."""
        call = self._pack()
        control, their_control = socket.socketpair()
        with control, their_control:
            work, their_work = socket.socketpair()
            with work, their_work:
                if self._told is not None:
                    raise asyncio.CancelledError("the agent was told to stop before it started")
                child = self._launch(their_control, their_work)
                their_control.close()
                their_work.close()
                with self._lock:
                    self._control, self._child = control, child
                    self._tell_supervisor()
                try:
                    return self._follow(child, control, work, call)
                finally:
                    with self._lock:
                        self._control = self._child = None
                    control.close()  # if we got here by a bug of ours: ends the process as well
                    child.wait()

    def _pack(self) -> bytes:
        agent = self._job.agent
        function = agent.function if isinstance(agent, Process) else agent
        try:
            call = (function, self._job.args, self._job.kwargs or {})
            return pack_call(call, process_main.find())
        except Exception as error:
            raise NotAnAgent(
                f"{function!r} or one of its arguments cannot be sent to a process: {error}. "
                "Pass plain data, or the path of a file."
            ) from error

    def _launch(self, control: socket.socket, work: socket.socket) -> subprocess.Popen[bytes]:
        """Start an interpreter. A fork of ours would copy the locks of threads it does not have."""
        boot = _BOOT.format(root=_ROOT, control=control.fileno(), work=work.fileno())
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return subprocess.Popen(
            [sys.executable, *flags, "-P", "-c", boot, self._job.name],
            stdin=subprocess.DEVNULL,
            pass_fds=(control.fileno(), work.fileno()),
            start_new_session=True,  # Ctrl-C is for us: we tell the agents
        )

    def _follow(
        self,
        child: subprocess.Popen[bytes],
        control: socket.socket,
        work: socket.socket,
        call: bytes,
    ) -> Ending | None:
        with suppress(OSError):  # it has died; how is seen below
            work.sendall(frame(call))
            work.sendall(call)
        del call
        work.setblocking(False)
        inbox, last_words = Inbox(), b""
        poll = select.poll()
        poll.register(work, select.POLLIN)
        poll.register(control, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if work.fileno() in ready:
                data = _receive(work)
                inbox.take(data or b"")
                if data == b"":
                    poll.unregister(work)
                self._report_answer(inbox)
            if control.fileno() in ready:
                said = _receive(control)
                if not said:
                    break
                last_words += said
        while data := _receive(work):
            inbox.take(data)
        self._report_answer(inbox)
        if child.wait() != 0:
            _clean_up_without_supervisor(work, inbox)
        return None if self._has_ended else self._death(last_words, inbox)

    def _report_answer(self, inbox: Inbox) -> None:
        if inbox.answer is None or self._has_ended:
            return
        try:
            ending = unpack_ending(inbox.answer)
        except Exception:  # noqa: BLE001 - no pickle of ours: what kind of error is an accident
            inbox.answer, inbox.is_spoilt = None, True
            return
        self._has_ended = True
        self._report_ended(self._job, ending)

    def _death(self, last_words: bytes, inbox: Inbox) -> Ending:
        """The ending of a process that gave no answer."""
        if inbox.is_spoilt:
            text = "the agent wrote into a pipe of Interlock's, so its answer cannot be read"
        elif not last_words.endswith(b"\n"):
            text = "the process of the agent was killed together with its supervisor"
        else:
            text = _words(os.waitstatus_to_exitcode(int(last_words)))
        if self._told is not None:
            text += ", after it was told to stop"
        return Ending(State.FAILED, None, ErrorRecord("ProcessDied", text))


def _words(code: int) -> str:
    if code >= 0:
        return f"the process of the agent ended with exit code {code} instead of an answer"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"the process of the agent was killed by {name}"


def _receive(connection: socket.socket) -> bytes | None:
    """What is there; None if nothing is there yet, empty if nothing more will come."""
    try:
        return connection.recv(_CHUNK)
    except BlockingIOError:
        return None
    except OSError:  # reset: it died with our bytes unread
        return b""


def _clean_up_without_supervisor(work: socket.socket, inbox: Inbox) -> None:
    """Somebody has killed the supervisor: end the agent and its group from here.

    What has left the group is not found any more.

    It names itself before it takes its call: either its name comes, or it has not begun.
    """
    work.setblocking(True)
    while inbox.pid is None and not inbox.is_spoilt and (data := _receive(work)):
        inbox.take(data)
    if inbox.pid is None:
        return
    nothing = threading.Event()
    with suppress(ProcessLookupError, PermissionError):
        while sys.platform != "linux" or members(inbox.pid):
            os.killpg(inbox.pid, signal.SIGKILL)
            nothing.wait(0.01)  # of strangers' processes nobody tells us when they are gone

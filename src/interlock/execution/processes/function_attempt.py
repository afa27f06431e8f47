"""One attempt of a function in a process of its own, as seen from the runtime's process."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from interlock.errors import NotAnAgent
from interlock.execution.backend import Launched
from interlock.execution.ending import Ending
from interlock.execution.processes import main_script
from interlock.execution.processes.inbox import Inbox
from interlock.execution.processes.process_agent import Process
from interlock.execution.processes.supervised_attempt import (
    SupervisedAttempt,
    SupervisorLink,
    SupervisorMessages,
    describe_exit,
    exit_code,
    inheritable_lock,
    receive,
)
from interlock.execution.processes.supervisor import USUAL
from interlock.execution.processes.sweep import sweep
from interlock.execution.processes.wire import frame, pack_call, unpack_ending
from interlock.execution.workspaces.port import NO_VARIABLES
from interlock.model.outcome import ErrorRecord, State
from interlock.system.process_table import members

_ROOT = str(Path(__file__).parents[3])
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from interlock.execution.processes.function_child import main; "
    "main({control}, {work}, {lock}, sys.argv[1])"
)


class FunctionAttempt(SupervisedAttempt):
    """Sends a function to an interpreter of its own, and receives its answer."""

    def run_to_end(self) -> Ending | None:
        call = self._pack()
        work, theirs = self.retry_while_short(socket.socketpair)
        with work, theirs, self.supervised(partial(self._launch, theirs)) as link:
            theirs.close()
            return self._follow(link, work, call)

    def _pack(self) -> bytes:
        agent = self.job.agent
        function = agent.function if isinstance(agent, Process) else agent
        try:
            call = (function, self.job.args, self.job.kwargs or {})
            return pack_call(call, main_script.find())
        except Exception as error:
            raise NotAnAgent(
                f"{function!r} or one of its arguments cannot be sent to a process: {error}. "
                "Pass plain data, or the path of a file."
            ) from error

    def _launch(self, work: socket.socket, control: socket.socket) -> subprocess.Popen[bytes]:
        """Start an interpreter. A fork would copy locks that threads of ours hold."""
        fds = [control.fileno(), work.fileno()]
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        with inheritable_lock(self.job.lock) as lock:
            boot = _BOOT.format(root=_ROOT, control=fds[0], work=fds[1], lock=lock)
            return subprocess.Popen(
                [sys.executable, *flags, "-P", "-c", boot, self.job.name],
                stdin=subprocess.DEVNULL,
                pass_fds=fds if lock is None else (*fds, lock),
                start_new_session=True,  # Ctrl-C is for us: we tell the agents
                env={**os.environ, **self._workspace_variables(), **self.job.marks},
            )

    def _workspace_variables(self) -> Mapping[str, str]:
        workspace = self.job.workspace
        return NO_VARIABLES if workspace is None else workspace.environment

    def _follow(self, link: SupervisorLink, work: socket.socket, call: bytes) -> Ending | None:
        control = link.control
        with suppress(OSError):  # the process has died; how is found out below
            work.sendall(frame(call))
            work.sendall(call)
        del call
        work.setblocking(False)
        inbox, messages = Inbox(), SupervisorMessages()
        poll = select.poll()
        poll.register(work, select.POLLIN)
        poll.register(control, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if work.fileno() in ready:
                data = receive(work)
                inbox.take(data or b"")
                if data == b"":
                    poll.unregister(work)
                self._report_answer(inbox)
            if control.fileno() in ready:
                said = receive(control)
                if not said:
                    break
                if messages.take(said):
                    self.reports.launched(self.job, Launched(messages.pid, messages.started, USUAL))
        while data := receive(work):
            inbox.take(data)
        self._report_answer(inbox)
        if link.supervisor.wait() != 0:
            _clean_up_without_supervisor(work, inbox)
            sweep([], [self.job.marks])
        return None if self.has_ended else self._death(messages, inbox)

    def _report_answer(self, inbox: Inbox) -> None:
        if inbox.answer is None or self.has_ended:
            return
        try:
            ending = unpack_ending(inbox.answer)
        except Exception:  # noqa: BLE001 - not a pickle of ours: any error can come of it
            inbox.answer, inbox.is_spoilt = None, True
            return
        self.has_ended = True
        self.reports.ended(self.job, ending)

    def _death(self, messages: SupervisorMessages, inbox: Inbox) -> Ending:
        """Return the ending of a process that gave no answer."""
        if inbox.is_spoilt:
            text = "the agent wrote into a pipe of Interlock's, so its answer cannot be read"
        elif messages.status is None:
            text = "the process of the agent was killed together with its supervisor"
        else:
            code = exit_code(messages.status)
            text = f"the process of the agent {describe_exit(code)}"
            text += " instead of an answer" if code >= 0 else ""
        if self.was_told:
            text += ", after it was told to stop"
        return Ending(State.FAILED, None, ErrorRecord("ProcessDied", text))


def _clean_up_without_supervisor(work: socket.socket, inbox: Inbox) -> None:
    """End the agent and its group from here: its supervisor was killed.

    The agent sends its pid before it takes its call: either the pid comes, or it has not begun.
    """
    work.setblocking(True)
    while inbox.pid is None and not inbox.is_spoilt and (data := receive(work)):
        inbox.take(data)
    if inbox.pid is None:
        return
    nothing = threading.Event()
    with suppress(ProcessLookupError, PermissionError):
        while sys.platform != "linux" or members(inbox.pid):
            os.killpg(inbox.pid, signal.SIGKILL)
            nothing.wait(0.01)  # they are no children of ours: the system does not tell us

"""The port through which attempts run: one attempt goes in, one ending comes out.

A backend starts an attempt and reports to a `Sink` what becomes of it. It decides nothing: whether
an attempt is tried again, or when its claims are released, is up to the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from interlock.execution.ending import Ending
from interlock.execution.workspaces.port import PreparedWorkspace
from interlock.model.command import Command
from interlock.model.redaction import Redaction


class Caps(NamedTuple):
    """What a backend can do. What it cannot do it says, instead of pretending."""

    kill: bool
    """It can end an attempt that does not cooperate."""


class Launched(NamedTuple):
    """The process of an attempt, described so that a later coordinator can find it.

    It is recorded in the journal, so that a resume can end what a killed coordinator has left.
    """

    pid: int
    """The process that has to be killed for all of the attempt to end."""
    started: int
    """When that process began, in clock ticks since the boot: a pid alone is used again."""
    containment: str
    """What keeps the attempt's processes together: see `containment`."""
    cgroup: str = ""
    log: str = ""
    """The file of its output, relative to the project folder."""


class Sink(Protocol):
    """Receives the reports of a backend. Only `post` may be called off the event loop's thread."""

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Have this called on the event loop; NotRunning if that is closed. From any thread."""

    def launched(self, token: int, launched: Launched) -> None:
        """The process of an attempt has started."""

    def ended(self, token: int, ending: Ending, *, gone: bool = True) -> None:
        """An attempt ended. `gone`: nothing of it runs any more; otherwise `gone()` follows."""

    def gone(self, token: int) -> None:
        """Nothing of an attempt runs any more that has been reported as ended before."""


class CommandJob(NamedTuple):
    """What a command has to know about the attempt that it runs for."""

    command: Command
    root: Path
    """The project folder: the attempt's log and TMPDIR are below its `.interlock`."""
    workspace: PreparedWorkspace
    """Where the program works."""
    run_id: str
    task_id: str
    attempt: int
    prompt: str
    redaction: Redaction
    secrets: Mapping[str, str] = MappingProxyType({})
    """Variables beside those of our own environment; a command gets the ones that it names."""


RUN = "INTERLOCK_RUN"


def marks(run_id: str, task_id: str) -> dict[str, str]:
    """Return the variables by which the processes of a task are recognised."""
    return {RUN: run_id, "INTERLOCK_TASK": task_id.replace("\0", "?")}


class AttemptJob(NamedTuple):
    """One attempt, ready to run."""

    token: int
    """The fencing token: names the attempt, and is never used again."""
    name: str
    """For the asyncio task, thread or process, so that a stack dump names the task."""
    call: Callable[[], Any]
    context: Context
    """The context variables that the agent sees; no other attempt has the same copy."""
    sink: Sink
    agent: Any = None
    """The agent itself and its arguments, for backends that cannot use a closure."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None
    workspace: PreparedWorkspace | None = None
    """Where the attempt works, if the runtime has prepared that."""
    command_job: CommandJob | None = None
    """Of commands only."""
    marks: Mapping[str, str] = MappingProxyType({})
    """Variables by which the processes of the attempt are recognised without a supervisor."""
    lock: Path | None = None
    """The file that supervisors hold a shared lock on (`journal.agents_lock`)."""


class Backend(Protocol):
    """Runs attempts.

    Every submitted job is reported as ended exactly once and as gone exactly once, whatever the
    agent does. Only these reports prove that it has stopped: `cancel` is a request, and may be
    repeated.
    """

    @property
    def caps(self) -> Caps: ...

    def submit(self, job: AttemptJob) -> None:
        """Start an attempt. Must not raise: an error is the ending of the job."""

    def cancel(self, token: int, grace: float) -> None:
        """Tell an attempt to stop; end it after `grace` seconds if `caps.kill`."""

    async def close(self) -> None:
        """Release what idles: no more jobs will come. Jobs that still run are left alone."""

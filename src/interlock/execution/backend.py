"""The port through which attempts run: one attempt goes in, one ending comes out."""

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
    """An attempt can be ended against its will."""


class Launched(NamedTuple):
    """The process of an attempt, as somebody can find it who knows nothing else."""

    pid: int
    """Who has to be killed for all of the attempt to end."""
    started: int
    """When that process began, in ticks since the system did: a pid alone names nobody for good."""
    containment: str
    """What keeps the attempt's processes together."""
    cgroup: str = ""
    log: str = ""
    """Where its output is kept, relative to the workspace."""


class Sink(Protocol):
    """Where a backend reports to; called on the thread of the event loop only, but for `post`."""

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """From any thread: have this called on the event loop. NotRunning if that is closed."""

    def launched(self, token: int, launched: Launched) -> None:
        """An attempt that runs in processes has one."""

    def ended(self, token: int, ending: Ending, *, gone: bool = True) -> None:
        """An attempt ended. `gone`: nothing of it is left running; otherwise `gone()` follows."""

    def gone(self, token: int) -> None:
        """Nothing is left of an attempt that had ended before."""


class CommandJob(NamedTuple):
    """What a command has to know of the task it is run for."""

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
    """Variables that are not in our own environment; a command gets those that it names."""


RUN = "INTERLOCK_RUN"


def marks(run_id: str, task_id: str) -> dict[str, str]:
    """The variables that all processes of a task have, and no other processes."""
    return {RUN: run_id, "INTERLOCK_TASK": task_id.replace("\0", "?")}


class AttemptJob(NamedTuple):
    """One attempt, ready to run."""

    token: int
    """The fencing token: names the attempt, and is never used again."""
    name: str
    """For the asyncio task, thread or process, so that a stack dump says whose it is."""
    call: Callable[[], Any]
    context: Context
    """The context variables that the agent sees; the attempt has it for itself."""
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
    """Variables by which every process of the attempt is known, also without a supervisor."""
    lock: Path | None = None
    """A file that supervisors hold a lock on: the next coordinator waits until none does."""


class Backend(Protocol):
    """A place where attempts run.

    Every submitted job is reported as ended exactly once and as gone exactly once, whatever the
    agent does. Only those reports prove that it stopped: `cancel` merely asks, and may be repeated.
    """

    @property
    def caps(self) -> Caps: ...

    def submit(self, job: AttemptJob) -> None:
        """Start an attempt. Must not raise: what goes wrong is the ending of the job."""

    def cancel(self, token: int, grace: float) -> None:
        """Tell an attempt to stop, as firmly as need be once `grace` seconds have passed."""

    async def close(self) -> None:
        """No more jobs will come; end what idles. Jobs that still run are left alone."""

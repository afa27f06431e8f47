"""What the runtime needs of the outside world, so that a simulation can replace it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interlock.execution.backend import Backend
from interlock.execution.call_spec import BackendKind
from interlock.execution.callables.coroutines import Coroutines
from interlock.execution.callables.threads import Threads
from interlock.execution.processes.process_backend import Commands, Processes
from interlock.execution.workspaces.port import Workspaces
from interlock.execution.workspaces.shared import SharedWorkspaces
from interlock.journal.memory import MemoryJournal
from interlock.journal.port import Journal
from interlock.journal.sqlite import SqliteJournal
from interlock.runtime.machine import LoadMeter, Machine
from interlock.runtime.recovery.orphan_processes import end_orphans

Orphaned = Callable[[int], None]
"""Called, on any thread, when an attempt is gone and its event loop has been closed."""


def real_backends(
    loop: asyncio.AbstractEventLoop, coroutines: Coroutines, orphaned: Orphaned
) -> Mapping[BackendKind, Backend]:
    """Coroutines on the loop; threads, processes and programs of the machine."""
    return {
        BackendKind.LOOP: coroutines,
        BackendKind.THREAD: Threads(loop, orphaned),
        BackendKind.PROCESS: Processes(loop, orphaned),
        BackendKind.COMMAND: Commands(loop, orphaned),
    }


@dataclass(frozen=True)
class Ports:
    """The clock, chance, backends and journal of a Runtime.

    Waiting goes by the clock of the event loop.
    """

    wall: Callable[[], float] = time.time
    """Seconds since 1970, read once: when a run starts."""
    chance: random.Random = field(default_factory=random.Random)
    backends: Callable[
        [asyncio.AbstractEventLoop, Coroutines, Orphaned], Mapping[BackendKind, Backend]
    ] = real_backends
    workspaces: Callable[[Path], Workspaces] = SharedWorkspaces
    """Where attempts work, by the project folder of the run."""
    signals: bool = True
    """Whether to handle SIGINT, SIGTERM and SIGHUP."""
    journal: Callable[[], Journal] = MemoryJournal
    """The journal of a run without a file."""
    open_journal: Callable[..., SqliteJournal] = SqliteJournal
    """The journal of a run with a file."""
    sweep: Callable[[SqliteJournal, Path], Awaitable[None]] = end_orphans
    """Sees to it that nothing is left of agents that an earlier coordinator has started."""
    load: Callable[[], LoadMeter] = Machine
    """Measures the load of the machine; made on first use."""

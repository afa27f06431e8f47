"""Before anything starts: whatever agents of an earlier coordinator are left have to be gone.

They die with their coordinator: their supervisors see to that, and hold a lock until it is done. If
somebody has killed the supervisors as well, the journal knows the processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from interlock.errors import EarlierAgentsAlive
from interlock.execution.backend import RUN, Launched
from interlock.execution.commands.attempt_folder import remove_temporary
from interlock.execution.processes.sweep import find_running, sweep
from interlock.journal.reader import Run
from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Kind
from interlock.system.process_identity import boot_id

PATIENCE = 5.0
"""Seconds in which supervisors have to be done, and then, once more, what is killed from here."""
_PAUSE = 0.02


async def end_orphans(disk: SqliteJournal, workspace: Path) -> None:
    """Wait until nothing is left of them, and end what nobody watches any more."""
    free = await _is_free(disk)
    runs = [run for run in disk.read.runs() if run.is_open and disk.read.last(run)]
    launched = [each for run in runs for each in _launched(disk, run)]
    # Also where a run was cut off before it could tell of a process: by the run's own name.
    marks = [{RUN: run.id} for run in runs]
    remaining: list[int] = []
    if runs and find_running(launched, marks):
        remaining = await asyncio.to_thread(sweep, launched, marks, PATIENCE)
    if remaining or not (free or await _is_free(disk)):
        raise EarlierAgentsAlive(str(disk.path), remaining)
    for run in runs:
        remove_temporary(workspace, run.id)


async def _is_free(disk: SqliteJournal) -> bool:
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while not disk.agents.is_free():
        if loop.time() > until:
            return False
        await asyncio.sleep(_PAUSE)  # those that end are no children of ours: nobody tells us
    return True


def _launched(disk: SqliteJournal, run: Run) -> Iterator[Launched]:
    """The processes of a run that was not closed, whether it is taken up or not."""
    for event in disk.read.events_of_kind(run, Kind.LAUNCHED):
        data = event.data
        if isinstance(data, dict) and data.get("boot") == boot_id():
            yield Launched(**{name: data[name] for name in Launched._fields if name in data})

"""End the orphans of earlier coordinators: no process of theirs may be left when a run starts.

Agents end with their coordinator. Their supervisors make sure of that, and hold a lock until it is
done. If the supervisors were killed as well, the processes are known from the journal, and from the
marks that each of them carries in its environment.
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
"""Seconds that the supervisors have, and again the processes that are killed from here."""
_PAUSE = 0.02


async def end_orphans(disk: SqliteJournal, workspace: Path) -> None:
    """Wait for the supervisors, then kill what has none. Raises EarlierAgentsAlive."""
    free = await _is_free(disk)
    runs = [run for run in disk.read.runs() if run.is_open and disk.read.last(run)]
    launched = [each for run in runs for each in _launched(disk, run)]
    # A run may have been cut off before its journal had the process: the run id marks it too.
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
        await asyncio.sleep(_PAUSE)  # they are not our children: there is no event to wait for
    return True


def _launched(disk: SqliteJournal, run: Run) -> Iterator[Launched]:
    """The processes of an open run, whether it is resumed or not."""
    for event in disk.read.events_of_kind(run, Kind.LAUNCHED):
        data = event.data
        if isinstance(data, dict) and data.get("boot") == boot_id():
            yield Launched(**{name: data[name] for name in Launched._fields if name in data})

"""Before anything starts: whatever agents of an earlier coordinator are left have to be gone.

They die with their coordinator: their supervisors see to that, and hold a lock until it is done. If
somebody has killed the supervisors as well, the journal knows the processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock.errors import EarlierAgentsAlive
from interlock.execution.backend import Launched
from interlock.execution.command_folder import remove_temporary
from interlock.execution.sweep import boot_id, sweep
from interlock.journal.sqlite import SqliteJournal
from interlock.model.event import Kind

PATIENCE = 5.0
"""Seconds in which supervisors have to be done, and then, once more, what is killed from here."""
_PAUSE = 0.02


async def sweep_leftovers(disk: SqliteJournal, workspace: Path) -> None:
    """Wait until nothing is left of them, and end what nobody watches any more."""
    free = await _is_free(disk)
    left: list[int] = []
    for run_id, launched in _unfinished(disk):
        marks = [f"INTERLOCK_RUN={run_id}"]
        left += await asyncio.to_thread(sweep, launched, marks, PATIENCE)
        if not left:
            remove_temporary(workspace, run_id)
    if left or not (free or await _is_free(disk)):
        raise EarlierAgentsAlive(str(disk.path), left)


async def _is_free(disk: SqliteJournal) -> bool:
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while not disk.agents.is_free():
        if loop.time() > until:
            return False
        await asyncio.sleep(_PAUSE)  # those that end are no children of ours: nobody tells us
    return True


def _unfinished(disk: SqliteJournal) -> Iterator[tuple[str, list[Launched]]]:
    """The processes of runs that were not closed: of the one that is taken up, and of others."""
    for run in disk.read.runs():
        if run.is_open:
            found = disk.read.events_of_kind(run, Kind.LAUNCHED)
            launched = [_launched(each.data) for each in found if _is_of_this_boot(each.data)]
            if launched:
                yield run.id, launched


def _is_of_this_boot(data: Any) -> bool:
    return isinstance(data, dict) and data.get("boot") == boot_id()


def _launched(data: dict[str, Any]) -> Launched:
    return Launched(*(data.get(name) for name in Launched._fields))  # type: ignore[arg-type]

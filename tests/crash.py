"""What a kill leaves of a journal, without the kill: a copy of its files at that moment."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from interlock import Runtime, TaskContext


def left_by_a_kill(journal: Path) -> Path:
    """A copy of a journal as it is on disk now, beside it. It holds an interrupted run."""
    count = 1
    while (copy := journal.with_name(f"{journal.stem}-{count}.db")).exists():
        count += 1
    shutil.copy(journal, copy)
    log, files = Path(f"{journal}-wal"), Path(f"{journal}.files")
    if log.exists():
        shutil.copy(log, f"{copy}-wal")
    if files.exists():
        shutil.copytree(files, f"{copy}.files")
    return copy


class _Killed(Exception):
    pass


async def killed(
    journal: Path, program: Callable[[Runtime], Awaitable[object]], **options: Any
) -> Path:
    """Run a program that returns in the middle of its run; returns what a kill leaves then."""
    copy = journal
    try:
        async with Runtime(journal=journal, **options) as rt:
            await program(rt)
            await rt.flush()
            copy = left_by_a_kill(journal)
            raise _Killed  # the original is of no more use
    except _Killed:
        return copy
    raise AssertionError("unreachable")


class Stay:
    """An agent that starts and does not end until it is told to. Use one for each test."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.attempts = 0

    async def run(self, ctx: TaskContext) -> int:
        self.attempts += 1
        self.began.set()
        await self.may_end.wait()
        return self.attempts

"""Follow a run from another process: poll the journal, at most four times a second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

from interlock.journal.reader import PAGE, Reader, Run
from interlock.model.event import Event

PAUSE = 0.25
"""Seconds between two polls, unless the last one found a full page."""


def follow(
    reader: Reader, run: Run, since: int = 0, stop: threading.Event | None = None
) -> Iterator[Event]:
    """The events of a run after a number, including those to come; ends when the run ends.

    An interrupted run never ends by itself: set `stop`, from another thread, to end earlier.
    """
    stop = stop or threading.Event()
    while True:
        page, over = _look(reader, run, since)
        yield from page
        if page:
            since = page[-1].number
        if len(page) < PAGE:
            if over or stop.is_set():
                return
            stop.wait(PAUSE)


async def follow_async(reader: Reader, run: Run, since: int = 0) -> AsyncIterator[Event]:
    """The same on an event loop. To stop, leave the iteration."""
    while True:
        page, over = _look(reader, run, since)
        for event in page:
            yield event
        if page:
            since = page[-1].number
        if len(page) < PAGE:
            if over:
                return
            await asyncio.sleep(PAUSE)


def _look(reader: Reader, run: Run, since: int) -> tuple[list[Event], bool]:
    # In this order: events may come between the two queries, but none after the end of the run.
    over = not reader.run(run.id).is_open
    return reader.events(run, since, PAGE), over

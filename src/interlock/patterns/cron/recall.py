"""What an earlier life of a scheduler has left in its run."""

from __future__ import annotations

import math

from interlock.errors import InterlockError
from interlock.model.task import Task
from interlock.patterns.cron.book import Book, at
from interlock.patterns.cron.clock import SET_BACK
from interlock.patterns.cron.firings import entry, firing_of
from interlock.runtime.runtime import Runtime


def recall(runtime: Runtime, book: Book, now: float) -> None:
    """Put into the book what the run knows and the book does not: it is written a moment later.

    But for what was fired by a clock that was far ahead: jobs do not wait for it to come again.
    """
    for name in (*(each.task_id for each in runtime.outcomes), *runtime.unsubmitted):
        firing = firing_of(name)
        if firing is not None and firing.due is not None and firing.due <= now + SET_BACK:
            page = book.page(firing.job_id)
            page.since = None if page.since is None else max(page.since, firing.due)
    for outcome in runtime.outcomes:
        firing = firing_of(outcome.task_id)
        if firing is None:
            continue
        page = book.page(firing.job_id)
        last = page.last_scheduled if firing.trigger == "schedule" else page.last_manual
        ended = math.inf if outcome.ended_at is None else outcome.ended_at.timestamp()
        if last is None or (at(last["ended_at"]) or 0.0) < ended:
            page.ended(entry(firing, outcome))
            book.changed(firing.job_id)


def abandon(runtime: Runtime) -> None:
    """The run is to be closed: what no job of this life stands for is over."""
    for name in runtime.unsubmitted:
        try:
            runtime.submit(Task(name, _nobody)).cancel("its job was not added again")
        except InterlockError:
            return  # it takes nothing more, as after a signal: then it stays open


def _nobody() -> None:
    """Stands for an agent that the program no longer has; never called."""

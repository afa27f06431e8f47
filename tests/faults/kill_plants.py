"""Bugs planted in the coordinator that is killed: the judge must find each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from interlock.journal.batch import Batch
from interlock.journal.store import Store
from interlock.runtime import shell
from interlock.runtime.event_stream import EventStream
from interlock.runtime.recovery import open_run
from interlock.runtime.recovery.known_tasks import KnownTasks


def _slow_disk() -> None:
    """Write slowly, so that a kill finds something that has not been written."""
    write = Store.write

    def slowly(store: Store, batches: Sequence[Batch]) -> None:
        threading.Event().wait(0.01)
        write(store, batches)

    Store.write = slowly  # type: ignore[method-assign, assignment]


def acknowledged_before_it_is_durable() -> None:
    _slow_disk()

    async def flush(self: shell.Shell) -> None:
        return

    shell.Shell.flush = flush  # type: ignore[method-assign]


def told_before_it_is_durable() -> None:
    _slow_disk()
    append = EventStream.append

    def at_once(record: EventStream, events: Sequence[object]) -> None:
        append(record, events)  # type: ignore[arg-type]

    EventStream.append = at_once  # type: ignore[assignment, method-assign]


def tokens_that_begin_anew() -> None:
    made = open_run.OpenedRun.__new__

    def anew(cls: type[open_run.OpenedRun], *values: object) -> open_run.OpenedRun:
        return made(cls, *values)._replace(first_token=1)  # type: ignore[arg-type]

    open_run.OpenedRun.__new__ = anew  # type: ignore[method-assign, assignment]


def answers_that_are_forgotten() -> None:
    KnownTasks.answers = lambda self, task_id: []  # type: ignore[method-assign]


def keys_that_end_with_their_run() -> None:
    KnownTasks.as_known = lambda self, task: task  # type: ignore[method-assign]
    init = KnownTasks.__init__

    def without_keys(self: KnownTasks, *values: object, **named: object) -> None:
        init(self, *values, **named)  # type: ignore[arg-type]
        self._by_key = lambda _key: None

    KnownTasks.__init__ = without_keys  # type: ignore[method-assign]


PLANTS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        acknowledged_before_it_is_durable,
        told_before_it_is_durable,
        tokens_that_begin_anew,
        answers_that_are_forgotten,
        keys_that_end_with_their_run,
    )
}

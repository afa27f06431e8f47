"""Group commit: everything that was put since the last commit is one transaction.

Nothing is dropped. What cannot be written now (the disk is full, for example) stays in memory and
is retried with growing pauses, and `on_trouble` is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol

from interlock.errors import InterlockError
from interlock.journal.batch import Batch
from interlock.journal.store import WORTH_ANOTHER_TRY, Store

OnTrouble = Callable[[Exception | None], None]
"""Called with the reason when nothing can be written; and with None when it can be again."""

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 1.0

Entry = tuple[Batch, "asyncio.Future[None]"]


class Writer(Protocol):
    """Takes batches to the store."""

    def put(self, batch: Batch) -> asyncio.Future[None]:
        """Enqueue a batch. It is durable when the future is done."""

    def close(self) -> None:
        """Write what is left, and stop. Raises if that is not possible."""


class Line:
    """The batches that wait for their commit. Knows no threads and no clock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: list[Entry] = []
        self._taken: list[Entry] = []
        self.pause = 0.0
        """How long to wait before the next attempt, in seconds."""

    def __bool__(self) -> bool:
        return bool(self.waiting or self._taken)

    def take(self) -> None:
        """Choose what is written next: everything that waits.

        A set that failed is retried unchanged, since its commit may have succeeded nevertheless.
        """
        if not self._taken:
            self._taken, self.waiting = self.waiting, []

    def commit(self) -> list[Entry]:
        """Write what was taken, and return it. May raise an error WORTH_ANOTHER_TRY."""
        try:
            self.store.write([batch for batch, _ in self._taken])
        except WORTH_ANOTHER_TRY:
            self.pause = min(_LONGEST_PAUSE, self.pause * 2 or _FIRST_PAUSE)
            raise
        self.pause = 0.0
        written, self._taken = self._taken, []
        return written

    def give_up(self) -> list[Entry]:
        """Drop and return everything that was not written."""
        left = self._taken + self.waiting
        self._taken, self.waiting = [], []
        return left


def not_written(store: Store, error: Exception | None) -> InterlockError:
    """The exception for a journal that is closed while the rest cannot be written."""
    why = f": {error}" if error else ""
    return InterlockError(f"the end of the run could not be written to {store.path}{why}")


class WriterThread:
    """Commits on a thread of its own; futures and `on_trouble` are served on the event loop."""

    def __init__(self, store: Store, on_trouble: OnTrouble) -> None:
        self._on_trouble = on_trouble
        self._loop = asyncio.get_running_loop()
        self._line = Line(store)
        self._news = threading.Condition()
        self._closing = False
        self._broken: Exception | None = None
        self._trouble: Exception | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"journal-{store.path.name}", daemon=True
        )
        self._thread.start()

    def put(self, batch: Batch) -> asyncio.Future[None]:
        """Enqueue a batch. It is durable when the future is done."""
        done: asyncio.Future[None] = self._loop.create_future()
        with self._news:
            if self._broken is None and not self._closing:
                self._line.waiting.append((batch, done))
                self._news.notify()
                return done
        done.set_exception(self._broken or InterlockError("the journal is closed"))
        return done

    def close(self) -> None:
        """Write what is left, and stop. Raises if that is not possible."""
        with self._news:
            self._closing = True
            self._news.notify()
        self._thread.join()
        left = self._line.give_up()
        if left:
            for _, done in left:
                done.cancel()
            raise not_written(self._line.store, self._trouble) from self._trouble

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._line or self._closing)
                if not self._line:
                    return
                last_try = self._closing
                self._line.take()
            try:
                written = self._line.commit()
            except WORTH_ANOTHER_TRY as error:
                self._say(error)
                if last_try:
                    return
                with self._news:
                    self._news.wait_for(lambda: self._closing, self._line.pause)
            except Exception as error:  # noqa: BLE001 - it goes to every future that waits for a commit
                with self._news:
                    self._broken = error
                    left = self._line.give_up()
                self._on_loop(settle, left, error)
                return
            else:
                self._say(None)
                self._on_loop(settle, written, None)

    def _say(self, trouble: Exception | None) -> None:
        if (trouble is None) != (self._trouble is None):
            self._on_loop(self._on_trouble, trouble)
        self._trouble = trouble

    def _on_loop(self, call: Callable[..., object], *args: object) -> None:
        # The loop may be closed: then nothing waits for the result.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *args)


def settle(entries: list[Entry], error: Exception | None) -> None:
    """Complete the futures of these entries, on their loop."""
    for _, done in entries:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

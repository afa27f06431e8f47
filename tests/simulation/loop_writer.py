"""Group commit without a thread: writes the same store from the event loop, for simulations."""

from __future__ import annotations

import asyncio

from interlock.errors import InterlockError
from interlock.journal.batch import Batch
from interlock.journal.store import WORTH_ANOTHER_TRY, Store
from interlock.journal.writer import Line, OnTrouble, not_written, settle
from interlock.testing.virtual_loop import VirtualLoop
from tests.simulation.faulty_disk import PowerCut


class LoopWriter:
    """Commits `latency` seconds after the first batch, then what has arrived since, and so on."""

    def __init__(self, store: Store, on_trouble: OnTrouble, latency: float = 0.001) -> None:
        self._loop = asyncio.get_running_loop()
        self._line = Line(store)
        self._on_trouble = on_trouble
        self._latency = latency
        self._timer: asyncio.TimerHandle | None = None
        self._trouble: Exception | None = None
        self._broken: Exception | None = None
        self._closed = False

    def put(self, batch: Batch) -> asyncio.Future[None]:
        """Queue a batch; it is durable once the future is done."""
        done: asyncio.Future[None] = self._loop.create_future()
        if self._broken is not None or self._closed:
            done.set_exception(self._broken or InterlockError("the journal is closed"))
            return done
        self._line.waiting.append((batch, done))
        if self._timer is None:
            self._timer = self._loop.call_later(self._latency, self._commit)
        return done

    def close(self) -> None:
        """Write what is queued, and stop. Raises if that is not possible."""
        if self._timer is not None:
            self._timer.cancel()
        self._closed = True
        while self._line and self._broken is None:
            self._commit()
            if self._trouble is not None:
                for _, done in self._line.give_up():
                    done.cancel()
                raise not_written(self._line.store, self._trouble) from self._trouble

    def _commit(self) -> None:
        self._timer = None
        if isinstance(self._loop, VirtualLoop) and self._loop.crashed:
            raise PowerCut
        self._line.take()
        try:
            settle(self._line.commit(), None)
        except WORTH_ANOTHER_TRY as error:
            self._say(error)
        except Exception as error:  # noqa: BLE001 - passed on to all that wait for a commit
            self._broken = error
            settle(self._line.give_up(), error)
            return
        except PowerCut:
            if isinstance(self._loop, VirtualLoop):
                self._loop.crash()
            raise
        else:
            self._say(None)
        if self._line and not self._closed:
            self._timer = self._loop.call_later(self._line.pause or self._latency, self._commit)

    def _say(self, trouble: Exception | None) -> None:
        if (trouble is None) != (self._trouble is None):
            self._on_trouble(trouble)
        self._trouble = trouble

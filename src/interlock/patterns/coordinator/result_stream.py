"""Results of a call for the thread that waits for them, which may stop waiting at any time."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from interlock.errors import FatalError, NotRunning
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.coordinated_run import CoordinatedRun
from interlock.patterns.coordinator.state_updates import StateUpdate, StateWriter
from interlock.runtime.hosting.host import RuntimeHost

Result = dict[str, Any]


class UpdateQueue:
    """Passes updates from the event loop to a thread; those of one turn wake it up once."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[StateUpdate] | None] = queue.SimpleQueue()
        self._turn: list[StateUpdate] = []
        self._received: deque[StateUpdate] = deque()

    def put(self, update: StateUpdate) -> None:
        """Add an update; on the thread of the event loop."""
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._flush)
        self._turn.append(update)

    def _flush(self) -> None:
        turn, self._turn = self._turn, []
        self._queue.put(turn)

    def end(self) -> None:
        """Add no more updates."""
        self._queue.put(None)

    def __iter__(self) -> UpdateQueue:
        """Iterate over all updates until the end. An interrupted reader may continue later."""
        return self

    def __next__(self) -> StateUpdate:
        if not self._received:
            turn = self._queue.get()
            if turn is None:
                raise StopIteration
            self._received.extend(turn)
        return self._received.popleft()


def stream_results(
    host: RuntimeHost,
    enter: Callable[[], CoordinatedRun],
    call: CoordinatedCall,
    updates: UpdateQueue,
    writer: StateWriter,
) -> Iterator[Result]:
    """Run a call on the loop of the host; write updates and yield results on this thread."""
    run = enter()
    try:
        done = host.start(run.execute(call))
    except BaseException:
        leave(host, run)
        raise
    done.add_done_callback(lambda _: updates.end())
    try:
        for update in updates:
            if (result := writer.write(update)) is not None:
                yield result
    except BaseException:  # also Ctrl-C, and a caller that closes the generator
        end = partial(_abandon, host, run, call, done, updates, writer)
        if run.runtime.loop_thread.is_current():
            # The garbage collector closes a half-read stream on the thread of the event loop,
            # which must not wait for itself.
            threading.Thread(target=end, name="interlock-stream", daemon=True).start()
        else:
            end()
        raise
    leave(host, run)
    done.result()


def leave(host: RuntimeHost, run: CoordinatedRun) -> None:
    """Leave the run from a thread. Fatal errors are in the results already."""
    with suppress(FatalError, NotRunning):
        host.leave_from_thread(run.runtime)


def _abandon(
    host: RuntimeHost,
    run: CoordinatedRun,
    call: CoordinatedCall,
    done: Future[None],
    updates: UpdateQueue,
    writer: StateWriter,
) -> None:
    """Cancel a call whose caller stopped reading, write the remaining updates, and leave."""
    try:
        try:
            run.runtime.loop_thread.call(run.cancel_call, call, "its caller stopped waiting")
        except NotRunning:
            if not done.done():
                return  # its loop was closed, or belongs to the parent of this process
        for update in updates:
            writer.write(update)
    finally:
        leave(host, run)

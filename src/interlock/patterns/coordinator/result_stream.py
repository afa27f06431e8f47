"""Results of a call for the thread that waits for them, which may stop waiting at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from interlock.errors import FatalError, NotRunning
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.coordinated_run import CoordinatedRun
from interlock.patterns.coordinator.state_updates import StateUpdate, StateWriter
from interlock.runtime.hosting.host import RuntimeHost
from interlock.runtime.hosting.thread_queue import ThreadQueue

Result = dict[str, Any]


UpdateQueue: TypeAlias = ThreadQueue[StateUpdate]


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

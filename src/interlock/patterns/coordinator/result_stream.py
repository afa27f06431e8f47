"""The results of a call for the thread that waits for them, which may stop waiting at any time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

from interlock.errors import NotRunning
from interlock.patterns.coordinator.coordinated_call import CoordinatedCall
from interlock.patterns.coordinator.coordinated_run import CoordinatedRun
from interlock.patterns.coordinator.house import House
from interlock.patterns.coordinator.state_updates import StateWriter
from interlock.patterns.coordinator.update_queue import UpdateQueue

Result = dict[str, Any]


def streamed(
    house: House, call: CoordinatedCall, feed: UpdateQueue, scribe: StateWriter
) -> Iterator[Result]:
    """Carry out a call in the house, and write down here what it tells."""
    background, run = house.enter()
    try:
        done = background.start(run.carry_out(call))
    except BaseException:
        house.leave()
        raise
    done.add_done_callback(lambda _: feed.end())
    try:
        for note in feed:
            if (result := scribe.write(note)) is not None:
                yield result
    except BaseException:  # also Ctrl-C, and a caller who wants no more of it
        end = partial(_give_up, house, call, run, done, feed, scribe)
        if run.runtime.loop_thread.is_current():
            # The collector of garbage has found a stream that was half read, and has found it on
            # the thread of the event loop, which must not wait for itself.
            threading.Thread(target=end, name="interlock-stream", daemon=True).start()
        else:
            end()
        raise
    house.leave()
    done.result()


def _give_up(
    house: House,
    call: CoordinatedCall,
    run: CoordinatedRun,
    done: Future[None],
    feed: UpdateQueue,
    scribe: StateWriter,
) -> None:
    """Cancel a call that nobody waits for, see to it that this is written down, and leave."""
    try:
        try:
            run.runtime.loop_thread.call(run.cancel_call, call, "nobody waits for it any more")
        except NotRunning:
            if not done.done():
                return  # it went with its loop, or stayed behind in another process
        for note in feed:
            scribe.write(note)
    finally:
        house.leave()

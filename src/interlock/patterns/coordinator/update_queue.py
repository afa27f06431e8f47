"""What a call tells, on its way from the event loop to the thread that waits for it."""

from __future__ import annotations

import asyncio
import queue
from collections import deque

from interlock.patterns.coordinator.state_updates import StateUpdate


class UpdateQueue:
    """Notes in their order; those of one turn of the loop wake the thread up once."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[StateUpdate] | None] = queue.SimpleQueue()
        self._turn: list[StateUpdate] = []
        self._heard: deque[StateUpdate] = deque()

    def tell(self, note: StateUpdate) -> None:
        """For the loop's thread."""
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._turn.append(note)

    def _hand_over(self) -> None:
        turn, self._turn = self._turn, []
        self._queue.put(turn)

    def end(self) -> None:
        """There will be no more."""
        self._queue.put(None)

    def __iter__(self) -> UpdateQueue:
        """All that is told until the end. Who was interrupted, even here, may go on later."""
        return self

    def __next__(self) -> StateUpdate:
        if not self._heard:
            turn = self._queue.get()
            if turn is None:
                raise StopIteration
            self._heard.extend(turn)
        return self._heard.popleft()

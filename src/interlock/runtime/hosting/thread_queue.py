"""Pass items from an event loop to a thread."""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class ThreadQueue(Generic[T]):
    """An iterator for one thread, filled on an event loop.

    The items of one turn of the loop wake the thread up once: many small items are cheap.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[T] | None] = queue.SimpleQueue()
        self._turn: list[T] = []
        self._received: deque[T] = deque()

    def put(self, item: T) -> None:
        """Add an item; on the thread of the event loop."""
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._flush)
        self._turn.append(item)

    def _flush(self) -> None:
        turn, self._turn = self._turn, []
        self._queue.put(turn)

    def end(self) -> None:
        """Add no more items."""
        self._queue.put(None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Wait for the next item. A thread that is interrupted here may continue later."""
        if not self._received:
            turn = self._queue.get()
            if turn is None:
                raise StopIteration
            self._received.extend(turn)
        return self._received.popleft()

"""A journal that ends with the process, and keeps only the latest events."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from interlock.model.event import Event, Kind

KEPT = 100_000


class MemoryJournal:
    """Holds the last `kept` events: a run that goes on for ever must not fill the memory."""

    def __init__(self, kept: int = KEPT) -> None:
        self._events: deque[Event] = deque(maxlen=kept)
        self._last = 0

    def append(self, events: Sequence[Event]) -> None:
        self._events.extend(events)
        self._last = events[-1].number

    def since(self, number: int, most: int = 1000) -> Sequence[Event]:
        wanted = self._last - number
        if wanted <= 0:
            return ()
        have = len(self._events)
        if wanted > have:
            first = self._events[0]
            missed = first.number - number - 1
            gap = Event(first.number - 1, first.at, Kind.MISSED, "", {"events": missed})
            return (gap, *islice(self._events, most - 1))
        # From the end: a deque is quick there, and that is where readers are.
        if wanted <= most:
            latest = list(islice(reversed(self._events), wanted))
            latest.reverse()
            return latest
        return list(islice(self._events, have - wanted, have - wanted + most))

    @property
    def last(self) -> int:
        return self._last

    def close(self) -> None:
        """Nothing to do."""

"""A journal in memory, which keeps only the latest events."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from interlock.model.event import Event, Kind

KEPT = 100_000


class MemoryRecords:
    """Records in memory."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, key: str, otherwise: Any = None) -> Any:
        return copy.deepcopy(self._values.get(key, otherwise))

    def items(self) -> Iterator[tuple[str, Any]]:
        return iter(copy.deepcopy(sorted(self._values.items())))

    async def put(self, key: str, value: Any) -> None:
        # Text is immutable, and most of what is kept is text.
        flat = type(value) is tuple and all(type(each) is str for each in value)
        self._values[key] = value if flat else copy.deepcopy(value)

    async def delete(self, key: str) -> None:
        self._values.pop(key, None)


class MemoryJournal:
    """Holds at least the last `kept` events, so that an endless run does not fill the memory."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._turns: deque[tuple[int, Sequence[Event]]] = deque()
        """The events of each turn, with the number of the last one."""
        self._held = 0
        self._records: dict[str, MemoryRecords] = {}
        self._last = 0

    def append(self, events: Sequence[Event]) -> None:
        self._last += len(events)
        self._held += len(events)
        self._turns.append((self._last, events))
        while self._held - len(self._turns[0][1]) >= self._kept:
            self._held -= len(self._turns.popleft()[1])

    def since(self, number: int, most: int = 1000) -> Sequence[Event]:
        found: list[Event] = []
        missed = self._last - self._held - number
        if missed > 0:
            first = self._turns[0][1][0]
            found.append(Event(first.number - 1, first.at, Kind.MISSED, "", {"events": missed}))
            number += missed
        # From the end: that is where readers are, and where a deque is fast.
        wanted: list[Sequence[Event]] = []
        for last, events in reversed(self._turns):
            if last <= number:
                break
            wanted.append(events[max(0, number - last + len(events)) :])
        while wanted and len(found) < most:
            found += wanted.pop()
        return found[:most]

    @property
    def last(self) -> int:
        return self._last

    def records(self, name: str) -> MemoryRecords:
        return self._records.setdefault(name, MemoryRecords())

    def close(self) -> None:
        """Nothing to do."""

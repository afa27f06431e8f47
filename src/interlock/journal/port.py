"""The port to whatever keeps the record of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from interlock.model.event import Event


class Journal(Protocol):
    """An append-only list of events.

    Nothing that follows from an event is done before the event is in the journal for good.
    """

    def append(self, events: Sequence[Event]) -> Awaitable[None] | None:
        """Take in what happened in one turn of the loop, as a whole.

        None: it is in. Otherwise it is in when the awaitable is done.
        """

    def since(self, number: int, most: int = 1000) -> Sequence[Event]:
        """The events that come after this number, oldest first, at most so many.

        Where the next one is no longer kept, an event of kind `missed` stands in its place.
        """

    @property
    def last(self) -> int:
        """The number of the last event; 0 if there is none."""

    def close(self) -> None:
        """No more events will come."""

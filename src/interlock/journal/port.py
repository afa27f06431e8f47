"""The port to whatever keeps the record of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Protocol

from interlock.model.event import Event


class Records(Protocol):
    """Data by key, beside the runs and outliving them as far as the journal does."""

    def get(self, key: str, otherwise: Any = None) -> Any: ...

    def items(self) -> Iterator[tuple[str, Any]]: ...

    async def put(self, key: str, value: Any) -> None:
        """Keep a value; it is there for good when this returns."""

    async def delete(self, key: str) -> None:
        """Forget a key, if it is there."""


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

    def records(self, name: str) -> Records:
        """The records of one namespace."""

    def close(self) -> None:
        """No more events will come."""

"""The port of the journal: what the runtime needs of whatever keeps its events."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Protocol

from interlock.model.event import Event


class Records(Protocol):
    """Values by key. They belong to the journal and not to a run, and outlive runs as it does."""

    def get(self, key: str, otherwise: Any = None) -> Any: ...

    def items(self) -> Iterator[tuple[str, Any]]: ...

    async def put(self, key: str, value: Any) -> None:
        """Set the value of a key. It is durable when this returns."""

    async def delete(self, key: str) -> None:
        """Delete a key, if it exists."""


class Journal(Protocol):
    """An append-only list of events.

    An event has to be durable before anything that follows from it is done.
    """

    def append(self, events: Sequence[Event]) -> Awaitable[None] | None:
        """Append the events of one turn of the loop, all or none of them.

        They are durable when the awaitable is done, or at once if there is none.
        """

    def since(self, number: int, most: int = 1000) -> Sequence[Event]:
        """The events after this number, oldest first, at most `most` of them.

        If the next one is no longer kept, an event of kind `missed` takes its place.
        """

    @property
    def last(self) -> int:
        """The number of the last event; 0 if there is none."""

    def records(self, name: str) -> Records:
        """The records of one namespace."""

    def close(self) -> None:
        """Close the journal. Nothing is appended after this."""

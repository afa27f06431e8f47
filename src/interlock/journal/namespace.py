"""Durable records by namespace, which systems keep independently of their runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.journal import queries
from interlock.journal.batch import Batch
from interlock.journal.reader import Reader
from interlock.journal.rows import column, row
from interlock.journal.schema.codec import Codec
from interlock.journal.writer import Writer


class Namespace:
    """Values by key. A `put` or `delete` that has been awaited is durable."""

    def __init__(self, name: str, codec: Codec, writer: Writer, reader: Reader) -> None:
        codec.check_name("the name of these records", name)
        self.name = name
        self._codec = codec
        self._writer = writer
        self._reader = reader

    def get(self, key: str, otherwise: Any = None) -> Any:
        """The value of a key."""
        return self._reader.record(self.name, key, otherwise)

    def items(self) -> Iterator[tuple[str, Any]]:
        """All keys and values, in the order of the keys."""
        return self._reader.records(self.name)

    async def put(self, key: str, value: Any) -> None:
        """Set the value of a key. Raises NotStorable."""
        batch = Batch()
        self._codec.check_name("the key of a record", key)
        text = self._codec.dumps(value, f"record {key!r}")
        batch.add(
            queries.PUT_RECORD,
            (self.name, key, *row(text, batch.files, self.name, key)),
        )
        await self._writer.put(batch)

    async def delete(self, key: str) -> None:
        """Delete a key, if it exists."""
        batch = Batch()
        batch.add(queries.DELETE_RECORD, (self.name, column(key)))
        await self._writer.put(batch)

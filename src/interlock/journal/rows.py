"""Data in rows: JSON in the row itself or, if it is large, in a file; with a checksum of both."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from interlock.journal.files import LARGE, Damaged, Files, name_of


class Row(NamedTuple):
    """What a table keeps of a value."""

    data: str | None
    file: str | None
    checksum: int


def row(text: str | None, files: dict[str, bytes], *columns: Any) -> Row:
    """The row for JSON text; where it is large, its file is added to `files`."""
    if text is not None and len(text) > LARGE // 4:
        encoded = text.encode()
        if len(encoded) > LARGE:
            name = name_of(encoded)
            files[name] = encoded
            return Row(None, name, checksum(None, name, *columns))
    return Row(text, None, checksum(text, None, *columns))


def checksum(data: str | None, file: str | None, *columns: Any) -> int:
    """Of all that must not change unnoticed."""
    return zlib.crc32(f"{columns}{data}{file}".encode())


def text_of(found: Row, files: Files, *columns: Any) -> str | None:
    """The JSON text of a row; raises Damaged if it is not what was written."""
    if checksum(found.data, found.file, *columns) != found.checksum:
        raise Damaged("its checksum does not fit")
    if found.file is not None:
        return files.read(found.file).decode()
    return found.data


def column(text: str) -> str:
    """Text as SQLite can hold it. Half a surrogate pair is no character, and is spelt out."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text

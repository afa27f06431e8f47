"""Data in rows: JSON in the row or, if it is large, in a file; with a checksum over the row."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Any, NamedTuple
from zlib import crc32

from interlock.journal.files import LARGE, Damaged, Files, name_of


class Row(NamedTuple):
    """The columns of a value."""

    data: str | None
    file: str | None
    checksum: int


def row(text: str | None, files: dict[str, bytes], *columns: Any) -> Row:
    """The row for JSON text; where it is large, its file is added to `files`."""
    data, file = spilled(text, files) if text is not None and len(text) > SMALL else (text, None)
    return Row(data, file, checksum(data, file, *columns))


SMALL = LARGE // 4
"""Text of at most so many characters is not large, whatever the characters are."""


def spilled(text: str, files: dict[str, bytes]) -> tuple[str | None, str | None]:
    """Text that may be large: itself, or the name of its file, which is added to `files`."""
    encoded = text.encode()
    if len(encoded) <= LARGE:
        return text, None
    name = name_of(encoded)
    files[name] = encoded
    return None, name


def checksum(data: str | None, file: str | None, *columns: Any) -> int:
    """The checksum of a row. Numbers go in as bytes: formatting them would be slow."""
    start, words = 0, ""
    for each in columns:
        kind = type(each)
        if kind is float:
            start = crc32(_FLOAT(each), start)
        elif kind is int:
            start = crc32(_WHOLE(each), start)
        else:
            words = f"{words}{each}\0"
    return crc32(f"{words}{data}\0{file}".encode(), start)


_FLOAT = Struct(">d").pack
_WHOLE = Struct(">q").pack


def text_of(found: Row, files: Files, *columns: Any) -> str | None:
    """The JSON text of a row; raises Damaged if it is not what was written."""
    try:
        same = checksum(found.data, found.file, *columns) == found.checksum
    except (struct_error, TypeError, ValueError):  # types that were never written
        same = False
    if not same:
        raise Damaged("its checksum does not fit")
    if found.file is not None:
        return files.read(found.file).decode()
    return found.data


def column(text: str) -> str:
    """Text as SQLite can hold it: half a surrogate pair is written as an escape sequence."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text

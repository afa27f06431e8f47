"""Reading a file as text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from interlock.plan.node import ScalarNode
from interlock.plan.problems import Problems

LARGEST: Final = 8 * 1024 * 1024
"""In bytes. A plan of ten thousand tasks has two million."""


def read_text(path: Path, problems: Problems) -> str:
    """Return the text of a file; raise with a problem if it cannot be read."""
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            problems.refuse(None, "", "it is not a regular file")  # Reading a pipe could block.
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        problems.refuse(None, "", f"cannot be read: {error.strerror or error}")
    if len(data) > LARGEST:
        problems.refuse(None, "", f"it is larger than {LARGEST // 1024**2} MiB; split it")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problems.refuse(ScalarNode("", line=1, column=1), "", "it is UTF-16; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        begin = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[begin : error.start].decode("utf-8", "replace")) + 1
        problems.refuse(
            ScalarNode("", line=line, column=column),
            "",
            f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8; save the file as UTF-8",
        )

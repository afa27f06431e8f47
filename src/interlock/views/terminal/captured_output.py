"""What is printed while the terminal is taken over is kept, and comes out afterwards."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import deque
from collections.abc import Iterable
from typing import IO, TextIO, cast

_MOST = 1_000_000
"""Characters that are kept of each stream: the last ones."""


class CapturedOutput:
    """Holds back standard output and error of this process."""

    def __init__(self) -> None:
        self._streams = _Stream(sys.stdout), _Stream(sys.stderr)
        sys.stdout, sys.stderr = (cast(TextIO, each) for each in self._streams)

    def release(self) -> None:
        """Put the real streams back, unless somebody has put others there, and print."""
        out, err = self._streams
        if sys.stdout is cast(TextIO, out):
            sys.stdout = out.stream
        if sys.stderr is cast(TextIO, err):
            sys.stderr = err.stream
        for stream in self._streams:
            stream.release()


class _Stream(io.TextIOBase):
    """Stands in for a stream. What is written to it later on, by whoever has kept it, goes on."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._kept: deque[str] | None = deque()
        self._size = 0
        self._lost = 0

    @property
    def rich_proxied_file(self) -> IO[str]:
        """Rich looks here for the real one."""
        return self.stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    def fileno(self) -> int:
        return self.stream.fileno()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if self._kept is None:
            return self.stream.write(text)
        self._kept.append(text)
        self._size += len(text)
        while self._size > _MOST and len(self._kept) > 1:
            dropped = len(self._kept.popleft())
            self._size -= dropped
            self._lost += dropped
        return len(text)

    def release(self) -> None:
        kept, self._kept = self._kept, None
        with contextlib.suppress(OSError):  # nobody is there any more to read it
            self._print(kept or ())

    def _print(self, kept: Iterable[str]) -> None:
        if self._lost:
            self.stream.write(f"({self._lost} characters that were printed are left out)\n")
        self.stream.write("".join(kept))
        self.stream.flush()

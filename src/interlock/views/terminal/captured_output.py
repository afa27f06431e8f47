"""Captures what is printed while the live view has the terminal, and prints it afterwards."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import deque
from collections.abc import Iterable
from typing import IO, TextIO, cast

_MOST = 1_000_000
"""How many characters of each stream are kept: the last ones."""


class CapturedOutput:
    """Captures standard output and standard error of this process from now on."""

    def __init__(self) -> None:
        self._streams = _Stream(sys.stdout), _Stream(sys.stderr)
        sys.stdout, sys.stderr = (cast(TextIO, each) for each in self._streams)

    def release(self) -> None:
        """Put the real streams back, unless they have been replaced meanwhile, and print."""
        out, err = self._streams
        if sys.stdout is cast(TextIO, out):
            sys.stdout = out.stream
        if sys.stderr is cast(TextIO, err):
            sys.stderr = err.stream
        for stream in self._streams:
            stream.release()


class _Stream(io.TextIOBase):
    """Replaces a stream. After the release, what is written to it is passed on."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._kept: deque[str] | None = deque()
        self._size = 0
        self._lost = 0

    @property
    def rich_proxied_file(self) -> IO[str]:
        """The real stream, for Rich."""
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
        with contextlib.suppress(OSError):  # the reader is gone
            self._print(kept or ())

    def _print(self, kept: Iterable[str]) -> None:
        if self._lost:
            self.stream.write(f"({self._lost} characters of output are omitted)\n")
        self.stream.write("".join(kept))
        self.stream.flush()

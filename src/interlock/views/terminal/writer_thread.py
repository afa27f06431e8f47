"""Writes in a thread of its own: frames of the live view, or lines.

A terminal that is slow, or stopped by Ctrl-S, or a pager in which nobody goes on must not hold up
the run. A frame that is not written yet when the next one comes is left out; of lines many wait,
and it is said how many were left out.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import IO

WAITING = 2_000
"""So many lines wait for somebody to read them."""


class _Writer:
    """Writes what `_next` has until nothing is to come; nothing more once that has failed."""

    def __init__(self, file: IO[str]) -> None:
        self._write = _past_buffers(file)
        self._closing = False
        self.broken = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._write_all, name="interlock-terminal-writer", daemon=True
        )

    def close(self, patience: float | None = None) -> None:
        """Come back when all is written; or when that takes too long, and it is `broken`."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(patience)
        self.broken |= self._thread.is_alive()

    def _write_all(self) -> None:
        try:
            while text := self._next():
                self._write(text)
        except (OSError, ValueError):
            # The window was closed, or the stream: nobody looks any more, and the run goes on.
            self.broken = True

    def _next(self) -> str:
        """What comes next, when it has come; empty if nothing will."""
        raise NotImplementedError


class FrameWriter(_Writer):
    """Writes `first`, then frames, and in the end `last`."""

    def __init__(self, file: IO[str], first: str, last: str) -> None:
        super().__init__(file)
        self._first = first
        self._frame = ""
        self._last = last
        self._thread.start()

    def draw(self, frame: str) -> None:
        """Have a frame written."""
        with self._changed:
            self._frame = frame
            self._changed.notify()

    def _next(self) -> str:
        with self._changed:
            first, self._first = self._first, ""
            if first:
                return first
            self._changed.wait_for(lambda: self._frame or self._closing)
            frame, self._frame = self._frame, ""
            if frame:
                return frame
            last, self._last = self._last, ""
            return last


class LineWriter(_Writer):
    """Writes lines, as a stream would."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self._lines: deque[str] = deque()
        self._left_out = 0
        self._thread.start()

    def write(self, text: str) -> None:
        """Have a text of whole lines written, if not too many wait already."""
        with self._changed:
            if len(self._lines) >= WAITING:
                self._left_out += 1
                return
            self._say_what_is_left_out()
            self._lines.append(text)
            self._changed.notify()

    def finish(self, text: str, patience: float | None = None) -> None:
        """Close with a text that is not left out."""
        with self._changed:
            self._say_what_is_left_out()
            self._lines.append(text)
        self.close(patience)

    def flush(self) -> None:
        """It is written as soon as it can be."""

    def _say_what_is_left_out(self) -> None:
        if self._left_out:
            self._lines.append(f"({self._left_out} lines are left out: nobody read them)\n")
            self._left_out = 0

    def _next(self) -> str:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closing)
            return self._lines.popleft() if self._lines else ""


def _past_buffers(file: IO[str]) -> Callable[[str], None]:
    """How to write to a stream. Not through its buffers, where it has a descriptor.

    A thread that is stuck in them holds their lock, and Python could not end without it.
    """
    try:
        number = file.fileno()
        file.flush()
    except (OSError, ValueError):
        return lambda text: (file.write(text), file.flush())[-1]
    encoding = getattr(file, "encoding", None) or "utf-8"

    def write(text: str) -> None:
        data = text.encode(encoding, "replace")
        while data:
            try:
                data = data[os.write(number, data) :]
            except BlockingIOError:  # somebody has made it so
                select.select([], [number], [])

    return write

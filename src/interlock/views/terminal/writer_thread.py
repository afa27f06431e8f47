"""Writes frames of the live view, or lines, in a thread of its own.

A terminal that is slow or stopped by Ctrl-S, or a pager that waits for a key, must not delay the
run. A frame that has not been written when the next one comes is dropped. Lines are queued; if the
queue is full, lines are dropped and their number is printed later.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import IO

WAITING = 2_000
"""The maximum number of queued lines."""


class _Writer:
    """Writes what `_next` returns until that is empty, or until writing fails."""

    def __init__(self, file: IO[str]) -> None:
        self._write = _past_buffers(file)
        self._closing = False
        self.broken = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._write_all, name="interlock-terminal-writer", daemon=True
        )

    def close(self, patience: float | None = None) -> None:
        """Wait until everything is written; after `patience` seconds, give up and be `broken`."""
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
            # The window or the stream was closed. The run goes on without it.
            self.broken = True

    def _next(self) -> str:
        """Wait for what comes next and return it; empty if nothing will come."""
        raise NotImplementedError


class FrameWriter(_Writer):
    """Writes `first`, then frames, and at the end `last`."""

    def __init__(self, file: IO[str], first: str, last: str) -> None:
        super().__init__(file)
        self._first = first
        self._frame = ""
        self._last = last
        self._thread.start()

    def draw(self, frame: str) -> None:
        """Queue a frame; it replaces one that has not been written yet."""
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
    """Writes lines, with the interface of a stream."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue a text of whole lines, unless too many are queued already."""
        with self._changed:
            if len(self._lines) >= WAITING:
                self._dropped += 1
                return
            self._report_dropped()
            self._lines.append(text)
            self._changed.notify()

    def finish(self, text: str, patience: float | None = None) -> None:
        """Write a last text, which is never dropped, and close."""
        with self._changed:
            self._report_dropped()
            self._lines.append(text)
        self.close(patience)

    def flush(self) -> None:
        """Do nothing: lines are written as soon as possible."""

    def _report_dropped(self) -> None:
        if self._dropped:
            self._lines.append(f"({self._dropped} lines are omitted: they were not read in time)\n")
            self._dropped = 0

    def _next(self) -> str:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closing)
            return self._lines.popleft() if self._lines else ""


def _past_buffers(file: IO[str]) -> Callable[[str], None]:
    """A function that writes to a stream, past its buffers if it has a descriptor.

    A thread that is stuck in a buffer holds its lock, and Python could not exit without that.
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
            except BlockingIOError:  # another process has made the descriptor non-blocking
                select.select([], [number], [])

    return write

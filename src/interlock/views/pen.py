"""Writes frames in a thread of its own.

A terminal that is slow, or stopped by Ctrl-S, must not hold up the run: a frame that is not written
yet when the next one comes is left out.
"""

from __future__ import annotations

import threading
from typing import IO


class Pen:
    """Writes `first`, then frames, and in the end `last`; nothing more once that has failed."""

    def __init__(self, file: IO[str], first: str, last: str) -> None:
        self._file = file
        self._first = first
        self._last = last
        self._frame = ""
        self._closing = False
        self.broken = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_all, name="interlock-live", daemon=True)
        self._thread.start()

    def draw(self, frame: str) -> None:
        """Have a frame written."""
        with self._changed:
            self._frame = frame
            self._changed.notify()

    def close(self) -> None:
        """Come back when all is written."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _write_all(self) -> None:
        try:
            self._write(self._first)
            while frame := self._next():
                self._write(frame)
            self._write(self._last)
        except (OSError, ValueError):
            # The window was closed, or the stream: nobody looks any more, and the run goes on.
            self.broken = True

    def _next(self) -> str:
        """The next frame; empty if none is to come."""
        with self._changed:
            self._changed.wait_for(lambda: self._frame or self._closing)
            frame, self._frame = self._frame, ""
            return frame

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()

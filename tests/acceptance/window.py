"""A window with a terminal in it, and a command that runs there as one typed into a shell does."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.acceptance.command_line import PATIENCE, PROGRAM, Folder, environment
from tests.integration.terminal import Picture

# Without it Ctrl-C would be a character like any other, and closing the window would say nothing.
# SIGHUP is reset: under `nohup make test` it would be ignored, and a closed window unnoticed.
_IN_THIS_TERMINAL = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
_SHOWN = "\x1b[?2026l"


class Window:
    """Runs `interlock` in a terminal of a size; what is on its screen can be looked at."""

    def __init__(self, folder: Folder, columns: int, rows: int, *words: str) -> None:
        self._master, slave = pty.openpty()
        self.picture = Picture(columns, rows)
        self.resize(columns, rows)
        self._settings = termios.tcgetattr(slave)
        environ = environment(TERM="xterm-256color")
        del environ["COLUMNS"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_THIS_TERMINAL, *PROGRAM, *words],
            cwd=folder.path,
            env=environ,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        self._slave = slave
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unread = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for descriptor in (self._slave, self._master):
            if descriptor >= 0:
                os.close(descriptor)

    def resize(self, columns: int, rows: int) -> None:
        """As when somebody pulls at the corner of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.picture.resize(columns, rows)

    def press(self, key: str) -> None:
        os.write(self._master, key.encode())

    def close(self) -> None:
        """As when somebody closes the window."""
        os.close(self._slave)
        os.close(self._master)
        self._slave = self._master = -1

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    @property
    def is_given_back(self) -> bool:
        """Whether the terminal is as it was before the command."""
        modes = self.picture.modes
        shown = [modes.get(each) for each in ("1049", "25", "7")]
        return shown == [False, True, True] and self.settings() == self._settings

    def frame(self, wanted: Callable[[list[str]], bool] = lambda _: True) -> list[str]:
        """The next complete frame with which this is so."""
        while True:
            while _SHOWN not in self._unread:
                self._read()
            seen, shown, self._unread = self._unread.partition(_SHOWN)
            self.picture.feed(seen + shown)
            if wanted(self.picture.lines):
                return self.picture.lines

    def frame_with(self, text: str) -> list[str]:
        """The next frame with this on it."""
        return self.frame(lambda lines: text in "\n".join(lines))

    def end(self) -> tuple[int, str]:
        """Its exit code, and what is left on the terminal when it has ended."""
        while self.process.poll() is None:
            self._read(0.05)
        while self._read(0):
            pass
        self.picture.feed(self._unread)
        return self.process.returncode, "\n".join(self.picture.main)

    def _read(self, patience: float = PATIENCE) -> bool:
        ready = select.select([self._master], [], [], patience)[0]
        if not ready:
            assert patience < PATIENCE, f"nothing more is drawn: {self.picture.lines}"
            return False
        self._unread += self._decoder.decode(os.read(self._master, 65_536))
        return True

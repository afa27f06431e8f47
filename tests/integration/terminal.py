"""A terminal for tests: a real pty with a program in it, and a screen that we can look at."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.cells import cell_len

ROOT = Path(__file__).parents[2]
_TOKENS = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])|\r|\n|.", re.DOTALL)


class Picture:
    """What is on the screen. It knows the few sequences our view uses, and refuses any other."""

    def __init__(self, columns: int, rows: int) -> None:
        self.modes: dict[str, bool] = {}
        self.resize(columns, rows)
        self.main: list[str] = [""]
        """The lines of the other screen, which scrolls."""

    def resize(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    @property
    def taken(self) -> bool:
        """Whether the view has the screen."""
        return self.modes.get("1049", False)

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, text: str) -> None:
        for token in _TOKENS.finditer(text):
            private, number, letter = token.groups()
            if letter is None:
                self._write(token[0])
            elif private:
                self.modes[number] = letter == "h"
            elif letter == "H":
                self.row, self.column = (int(each) - 1 for each in number.split(";"))
            elif letter == "K":
                self.cells[self.row][self.column :] = [" "] * (self.columns - self.column)
            else:
                assert letter in "mJ", f"unexpected {token[0]!r}"

    def _write(self, character: str) -> None:
        if not self.taken:
            self.main[-1:] = (self.main[-1] + character).replace("\r", "").split("\n")
            return
        width = cell_len(character)
        if not width:
            return
        assert self.row < len(self.cells), "a line below the screen"
        assert self.column + width <= self.columns, "a line beyond the edge"
        self.cells[self.row][self.column : self.column + width] = [character, *[""] * (width - 1)]
        self.column += width


class Terminal:
    """Runs tests.integration.live_program in a terminal of a size."""

    def __init__(self, columns: int, rows: int, **environ: str) -> None:
        self.master, self.slave = pty.openpty()
        self.picture = Picture(columns, rows)
        self.set_size(columns, rows)
        self.before = self.settings()
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        plain = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.live_program", str(orders), str(answers)],
            cwd=ROOT,
            env={**plain, "TERM": "xterm-256color", "PYTHONPATH": f"{ROOT / 'src'}", **environ},
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            pass_fds=(orders, answers),
            process_group=0,  # as a shell does it: in a session of its own Ctrl-Z would do nothing
        )
        os.close(orders)
        os.close(answers)
        self._told = os.fdopen(self._answers)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.unread = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._told.close()
        os.close(self._orders)
        os.close(self.slave)
        if self.master >= 0:
            os.close(self.master)

    def set_size(self, columns: int, rows: int) -> None:
        """As when somebody pulls at the corner of the window."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.picture.resize(columns, rows)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def order(self, order: str) -> None:
        os.write(self._orders, f"{order}\n".encode())

    def told(self) -> str:
        """The next answer of the program; empty when it has ended."""
        return self._told.readline().strip()

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self.master)
        self.master = -1

    def see(self, wanted: str) -> None:
        """Read what the program writes until this has come."""
        while wanted not in self.unread:
            self._read()
        seen, _, self.unread = self.unread.partition(wanted)
        self.picture.feed(seen + wanted)

    def see_frame(self) -> list[str]:
        """The screen when the next frame is complete."""
        self.see("\x1b[?2026l")
        return self.picture.lines

    def see_all(self) -> None:
        """What is left to see when the program has ended."""
        self.process.wait()
        os.set_blocking(self.master, False)
        while True:
            try:
                self._read()
            except BlockingIOError:
                break
        self.picture.feed(self.unread)

    def _read(self) -> None:
        self.unread += self._decoder.decode(os.read(self.master, 65_536))

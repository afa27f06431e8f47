"""A document followed literally: its files are written, its commands typed, in real terminals.

A block `yaml` is the file that its first line names. A block `sh` is typed, in a second terminal if
its first line says so, and a block `text` right after it is what the terminal shows then. A block
`text` that begins with `^C` is a key to press in the first terminal, and what is left there.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_BLOCK = re.compile(
    r"^```(yaml|sh)\n(.*?)^```$(?:\s+^```text\n(.*?)^```$)?|^```text\n((?:\^C\n)+)(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_DONE = "\x1e"
_SHELL = "import fcntl, os, sys, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
_SHELL += "os.execvp('sh', ['sh', f'/dev/fd/{sys.argv[1]}'])"


class Step(NamedTuple):
    """One thing that a reader does."""

    kind: str
    """`yaml`, `sh` or `keys`."""
    text: str
    shown: str | None
    """What is on the terminal afterwards, if the document says so."""

    @property
    def is_second(self) -> bool:
        """Whether it is typed in a second terminal."""
        return self.text.startswith("# in a second terminal\n")


def steps(text: str) -> Iterator[Step]:
    """What a document tells its reader to do."""
    for found in _BLOCK.finditer(text):
        kind, typed, shown, keys, left = found.groups()
        yield Step("keys", keys, left) if keys else Step(kind, typed, shown)


class Terminal:
    """A shell in a terminal of 80 columns."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._ours, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        lines, self._lines = os.pipe()
        self._shell = subprocess.Popen(
            [sys.executable, "-c", _SHELL, str(lines)],
            cwd=folder,
            env=environ,
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            pass_fds=(lines,),
        )
        os.close(lines)
        os.close(screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unread = ""
        self._write("trap : INT\n")  # a shell that people type into is not ended by Ctrl-C

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        os.close(self._lines)
        os.close(self._ours)
        with contextlib.suppress(ProcessLookupError):  # after a failure something may still run
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()

    def type(self, text: str) -> None:
        """Type commands, and do not wait for them."""
        self._write(f'{text}\nprintf "{_DONE}%s\\n" "$?"\n')

    def press_ctrl_c(self) -> None:
        """As a person would."""
        os.write(self._ours, b"\x03")

    def see(self, text: str) -> str:
        """Read until this has come; all that came before it."""
        while text not in self._unread:
            read = os.read(self._ours, 65_536)
            self._unread += self._decoder.decode(read).replace("\r\n", "\n").replace("\r", "\n")
        seen, _, self._unread = self._unread.partition(text)
        return seen

    def left(self) -> tuple[str, int]:
        """What the commands have left on the screen, and the exit code of the last one."""
        shown = self.see(_DONE)
        return plain(shown), int(self.see("\n"))

    def _write(self, text: str) -> None:
        os.write(self._lines, text.encode())


def plain(shown: str) -> str:
    """What is to be read afterwards: without the live view, colours, and keys that were echoed."""
    shown = re.sub(r"\x1b\[\?1049h.*?\x1b\[\?1049l", "", shown, flags=re.S)
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown).replace("^C", "")
    return "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())

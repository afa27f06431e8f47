"""Takes over a terminal, and restores it whatever happens."""

from __future__ import annotations

import atexit
import contextlib
import sys
import termios
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from rich.text import Text

from interlock.views.terminal.ascii_fallback import AsciiFallback
from interlock.views.terminal.captured_output import CapturedOutput
from interlock.views.terminal.console import discard_output
from interlock.views.terminal.writer_thread import FrameWriter

# The alternate screen (1049) without a cursor (25) and without wrapping (7): a line that the
# terminal takes to be longer than we do is cut instead of scrolling the screen. A frame is shown at
# once (2026); terminals that do not support that draw it as it arrives.
_TAKE = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_GIVE_BACK = "\x1b[?2026l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_FRAME, _SHOWN = "\x1b[?2026h", "\x1b[?2026l"
_CLEAR_REST = "\x1b[K"


class Screen:
    """The alternate screen of a terminal: no cursor, no echo, and no other output on it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._writer: FrameWriter | None = None
        self._captured: CapturedOutput | None = None
        self._modes: tuple[int, list[Any]] | None = None
        self.gone = False
        """Whether the terminal turned out to be gone."""

    def take(self) -> None:
        """Take over the terminal."""
        atexit.register(self.give_back)
        self._writer = FrameWriter(self._console.file, _TAKE, _GIVE_BACK)
        self._captured = CapturedOutput()
        self._echo_off()

    def draw(self, lines: Sequence[Text], width: int) -> None:
        """Draw a frame over the last one. Nothing is cleared first, so nothing flickers."""
        if self._writer is None:
            return
        drawn = [_FRAME]
        for number, line in enumerate(lines, start=1):
            # A full line has no rest: clearing it would erase its last character.
            rest = _CLEAR_REST if cell_len(line.plain.rstrip()) < width else ""
            drawn += [f"\x1b[{number};1H", *self._coded(line, width), rest]
        self._writer.draw("".join([*drawn, _SHOWN]))

    def _coded(self, line: Text, width: int) -> Iterator[str]:
        """The line as text with colour codes. Rich could print it, but would touch the terminal."""
        console = self._console
        options = console.options.update(width=width, no_wrap=True)
        segments = console.render(AsciiFallback(line), options)
        if console.no_color:
            segments = Segment.remove_color(segments)
        system = COLOR_SYSTEMS.get(console.color_system or "")
        for text, style, _ in segments:
            text = text.rstrip("\n")
            yield style.render(text, color_system=system) if style else text

    def give_back(self, patience: float | None = None) -> None:
        """Restore the terminal, then print what was captured meanwhile. May be called repeatedly.

        A terminal that does not accept the output within `patience` seconds counts as gone.
        """
        pen, self._writer = self._writer, None
        if pen is None:
            return
        atexit.unregister(self.give_back)
        try:
            pen.close(patience)
            self.gone = pen.broken
            if self.gone:
                discard_output()  # otherwise Python would try to write it again at exit
        finally:
            self._echo_on()
            if self._captured is not None:
                self._captured.release()

    def _echo_off(self) -> None:
        """Keep typed keys from appearing in the view. Ctrl-C still works."""
        try:
            descriptor = sys.stdin.fileno()
            modes = termios.tcgetattr(descriptor)
        except (OSError, ValueError, AttributeError, termios.error):
            return  # standard input is not a terminal
        self._modes = descriptor, modes
        termios.tcsetattr(
            descriptor, termios.TCSANOW, [*modes[:3], modes[3] & ~termios.ECHO, *modes[4:]]
        )

    def _echo_on(self) -> None:
        if self._modes is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._modes[0], termios.TCSANOW, self._modes[1])
            self._modes = None

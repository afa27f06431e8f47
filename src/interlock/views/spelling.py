"""What a terminal cannot spell is spelt otherwise, in as many cells."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_OURS = str.maketrans("●○↻·✓✗⊘–◌…━─│├└╰×→▸", ">o~.+x/-o.=-|+++x>>")
"""Our own marks and lines in ASCII."""


class Spelled:
    """A renderable in characters that the terminal knows; in UTF-8 it is left as it is."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        segments = console.render(self.renderable, options)
        if not options.ascii_only:
            yield from segments
            return
        for text, style, control in segments:
            yield Segment(text if control else spelled(text, options.encoding), style, control)


def spelled(text: str, encoding: str) -> str:
    """The text in characters of an encoding; a question mark for each cell of any other one."""
    text = text.translate(_OURS)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_spelled(each, encoding) for each in text)
    return text


def _spelled(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return "?" * cell_len(character)
    return character

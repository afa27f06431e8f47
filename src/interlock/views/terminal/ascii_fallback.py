"""Replaces characters that a terminal cannot encode, in the same number of cells."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_OURS = str.maketrans("●○↻·✓✗⊘–◌…━─│├└╰×→▸", ">o~.+x/-o.=-|+++x>>")
"""The marks and lines that Interlock draws, in ASCII."""


class AsciiFallback:
    """A renderable in characters that the terminal can encode, without trailing blanks."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for line in Segment.split_lines(console.render(self.renderable, options)):
            while line and not line[-1].text.strip():
                line.pop()
            for number, (text, style, control) in enumerate(line, start=1):
                text = text.rstrip() if number == len(line) else text
                text = encodable(text, options.encoding) if options.ascii_only else text
                yield Segment(text, style, control)
            yield Segment.line()


def encodable(text: str, encoding: str) -> str:
    """The text in characters of an encoding; others become question marks, one per cell."""
    text = text.translate(_OURS)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_encodable(each, encoding) for each in text)
    return text


def _encodable(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return "?" * cell_len(character)
    return character

"""Text in the cells of a terminal: never wider than its place, no character cut in half."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells
from rich.text import Text

from interlock.views.terminal import safe_text

ELLIPSIS = "…"


def fit(text: str, width: int) -> str:
    """A harmless line of at most so many cells; an ellipsis says that there was more."""
    text = safe_text.line(text)
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[: max(0, width)]
    return _head(text, width - 1).rstrip(f" {ELLIPSIS}") + ELLIPSIS


def fit_name(text: str, width: int) -> str:
    """The same for a name, with the ellipsis inside: names often differ in their ends only."""
    text = safe_text.line(text)
    if cell_len(text) <= width or width < 12:
        return fit(text, width)
    tail = _tail(text, (width - 1) // 3)
    return _head(text, width - 1 - cell_len(tail)) + ELLIPSIS + tail


def column(text: str, width: int) -> str:
    """A name in exactly so many cells."""
    fitted = fit_name(text, width)
    return fitted + " " * (width - cell_len(fitted))


def shown(text: str, style: str = "") -> Text:
    """A harmless text for a place that can grow or wrap."""
    return Text(safe_text.line(text), style)


def joined(parts: list[Text], gap: str = "  ") -> Text:
    """Texts on one line."""
    return Text(gap).join(parts)


def spread(left: Text, right: Text, width: int) -> Text:
    """Two texts at both ends of a line. Where there is no room for both, the right one goes."""
    room = width - left.cell_len - right.cell_len
    if room < 2:
        return cut(left, width)
    return Text.assemble(left, " " * room, right)


def cut(text: Text, width: int) -> Text:
    """A styled line of at most so many cells."""
    if text.cell_len <= width:
        return text
    kept = _head(text.plain, width - 1).rstrip(f" {ELLIPSIS}")
    return Text.assemble(text[: len(kept)], ELLIPSIS[: max(0, width)])


def _head(text: str, width: int) -> str:
    if width <= 0:
        return ""
    pieces = chop_cells(text, width)
    head = pieces[0] if pieces else ""
    return head if cell_len(head) <= width else ""


def _tail(text: str, width: int) -> str:
    """The longest end that fits. Accents stay with what they belong to."""
    start = len(text)
    while start and cell_len(text[start - 1 :]) <= width:
        start -= 1
    while start < len(text) and not cell_len(text[start]):
        start += 1
    return text[start:]

"""Fits text to the cells of a terminal: never too wide, and no character is cut in half."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells
from rich.text import Text

from interlock.views.terminal import safe_text

ELLIPSIS = "…"


def fit(text: str, width: int) -> str:
    """The text as a safe line of at most `width` cells; an ellipsis marks what was cut off."""
    text = safe_text.line(text)
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[: max(0, width)]
    return _head(text, width - 1).rstrip(f" {ELLIPSIS}") + ELLIPSIS


def fit_name(text: str, width: int) -> str:
    """Like `fit`, with the ellipsis inside: names often differ only at the end."""
    text = safe_text.line(text)
    if cell_len(text) <= width or width < 12:
        return fit(text, width)
    tail = _tail(text, (width - 1) // 3)
    return _head(text, width - 1 - cell_len(tail)) + ELLIPSIS + tail


def column(text: str, width: int) -> str:
    """A name in exactly `width` cells."""
    fitted = fit_name(text, width)
    return fitted + " " * (width - cell_len(fitted))


def shown(text: str, style: str = "") -> Text:
    """The text as a safe line of any width."""
    return Text(safe_text.line(text), style)


def joined(parts: list[Text], gap: str = "  ") -> Text:
    """Texts on one line."""
    return Text(gap).join(parts)


def spread(left: Text, right: Text, width: int) -> Text:
    """Two texts at both ends of a line; without room for both, only the left one."""
    room = width - left.cell_len - right.cell_len
    if room < 2:
        return cut(left, width)
    return Text.assemble(left, " " * room, right)


def cut(text: Text, width: int) -> Text:
    """A styled line of at most `width` cells."""
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
    """The longest end that fits. Combining characters stay with their base."""
    start = len(text)
    while start and cell_len(text[start - 1 :]) <= width:
        start -= 1
    while start < len(text) and not cell_len(text[start]):
        start += 1
    return text[start:]

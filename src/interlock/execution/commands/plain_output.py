"""The output of a program as plain text: decoded, without control sequences for the terminal.

The bytes cannot be trusted, and come in pieces that are cut anywhere.
"""

from __future__ import annotations

import codecs

from interlock.model.plain_text import OPEN_STRING, STRING_END, UNFINISHED, plain

_HARMLESS = bytes([*b"\t\n", *range(0x20, 0x7F), *range(0x80, 0xC2), *range(0xC3, 0x100)])
"""Bytes that need no cleaning. In UTF-8 the control characters beyond ASCII begin with 0xC2."""

_LONGEST_SEQUENCE = 1 << 16


class Cleaner:
    """Turns bytes into text: invalid UTF-8 is replaced, escapes and controls are left out.

    A carriage return becomes a new line, so that what a progress bar has overwritten stays visible.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept: list[str] = []
        """What may be the beginning of a control sequence, unchanged."""
        self._length = 0
        self._in_string = False
        """Whether it is a string sequence, which continues until a terminator."""

    def take(self, data: bytes) -> str:
        """Take in more bytes; return the text that is complete."""
        # In the middle of a character any byte may follow.
        harmless = not self._kept and not self._decoder.getstate()[0]
        text = self._decoder.decode(data)
        if harmless and not data.translate(None, _HARMLESS):
            return text
        # What is kept has been searched before, and is not searched again for every piece.
        fits = self._length + len(text) <= _LONGEST_SEQUENCE
        if self._in_string and fits and not STRING_END.search(text):
            self._keep(text)
            return ""
        return self._clean("".join([*self._kept, text]), last=False)

    def rest(self) -> str:
        """Return what was kept back: the stream has ended."""
        return self._clean("".join([*self._kept, self._decoder.decode(b"", True)]), last=True)

    def _keep(self, text: str) -> None:
        self._kept.append(text)
        self._length += len(text)

    def _clean(self, text: str, last: bool) -> str:
        self._kept, self._length, self._in_string = [], 0, False
        if not last:
            # A sequence that is not complete after so much text loses its first character.
            begun = UNFINISHED.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
            if begun is not None:
                self._keep(begun[0])
                self._in_string = OPEN_STRING.match(begun[0]) is not None
                text = text[: begun.start()]
            elif text.endswith("\r"):
                text = text[:-1]
                self._keep("\r")
        return plain(text)

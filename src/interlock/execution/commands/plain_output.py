"""What a program prints, as text that harms nobody: decoded, without orders to the terminal.

The bytes are those of a stranger and come in pieces, cut anywhere.
"""

from __future__ import annotations

import codecs

from interlock.model.plain_text import OPEN_STRING, STRING_END, UNFINISHED, plain

_HARMLESS = bytes([*b"\t\n", *range(0x20, 0x7F), *range(0x80, 0xC2), *range(0xC3, 0x100)])
"""Bytes that need no second look. 0xC2 begins, in UTF-8, the control characters beyond ASCII."""

_LONGEST_SEQUENCE = 1 << 16


class Cleaner:
    """Takes in bytes, gives out text: invalid UTF-8 replaced, escapes and controls left out.

    A carriage return is a new line: what a progress bar has overwritten is to be seen as well.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept: list[str] = []
        """What may be the beginning of a sequence, as it came."""
        self._length = 0
        self._in_string = False
        """Whether that is a string, which goes on until something ends it."""

    def take(self, data: bytes) -> str:
        """The text that is complete now."""
        # In the middle of a character the next byte may be anything.
        harmless = not self._kept and not self._decoder.getstate()[0]
        text = self._decoder.decode(data)
        if harmless and not data.translate(None, _HARMLESS):
            return text
        # What is kept was looked through before, and is not again for every piece.
        fits = self._length + len(text) <= _LONGEST_SEQUENCE
        if self._in_string and fits and not STRING_END.search(text):
            self._keep(text)
            return ""
        return self._clean("".join([*self._kept, text]), last=False)

    def rest(self) -> str:
        """What was kept back, now that nothing more will come."""
        return self._clean("".join([*self._kept, self._decoder.decode(b"", True)]), last=True)

    def _keep(self, text: str) -> None:
        self._kept.append(text)
        self._length += len(text)

    def _clean(self, text: str, last: bool) -> str:
        self._kept, self._length, self._in_string = [], 0, False
        if not last:
            # What is no whole sequence after so much text loses its first character at least.
            begun = UNFINISHED.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
            if begun is not None:
                self._keep(begun[0])
                self._in_string = OPEN_STRING.match(begun[0]) is not None
                text = text[: begun.start()]
            elif text.endswith("\r"):
                text = text[:-1]
                self._keep("\r")
        return plain(text)

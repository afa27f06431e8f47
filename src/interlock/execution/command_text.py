"""What a program prints, as text that harms nobody: decoded, without orders to the terminal.

The bytes are those of a stranger and come in pieces, cut anywhere.
"""

from __future__ import annotations

import codecs
import re

_HARMLESS = bytes([*b"\t\n", *range(0x20, 0x7F), *range(0x80, 0xC2), *range(0xC3, 0x100)])
"""Bytes that need no second look. 0xC2 begins, in UTF-8, the control characters beyond ASCII."""

_STRING = r"(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])"
_BODY = r"[^\x07\x1b\x9c\n]*"
_SEQUENCE = re.compile(
    rf"{_STRING}{_BODY}(?:\x07|\x1b\\|\x9c)"  # titles, links, the clipboard, device strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, movements of the cursor, modes
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
_UNFINISHED = re.compile(rf"(?:{_STRING}{_BODY}\x1b?|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[ -/]*)\Z")
_LONGEST_SEQUENCE = 1 << 16
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Cleaner:
    """Takes in bytes, gives out text: invalid UTF-8 replaced, escapes and controls left out.

    A carriage return is a new line: what a progress bar has overwritten is to be seen as well.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = ""

    def take(self, data: bytes) -> str:
        """The text that is complete now."""
        # In the middle of a character the next byte may be anything.
        harmless = not self._kept and not self._decoder.getstate()[0]
        text = self._decoder.decode(data)
        if harmless and not data.translate(None, _HARMLESS):
            return text
        return self._clean(self._kept + text, last=False)

    def rest(self) -> str:
        """What was kept back, now that nothing more will come."""
        return self._clean(self._kept + self._decoder.decode(b"", True), last=True)

    def _clean(self, text: str, last: bool) -> str:
        self._kept = ""
        if not last:
            # What is no whole sequence after so much text loses its first character at least.
            begun = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
            if begun is not None:
                text, self._kept = text[: begun.start()], text[begun.start() :]
            elif text.endswith("\r"):
                text, self._kept = text[:-1], "\r"
        text = _SEQUENCE.sub("", text)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return _CONTROL.sub("", text)

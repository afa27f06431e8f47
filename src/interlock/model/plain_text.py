"""Text without terminal control sequences: what is kept of the output of programs.

Each introducer is looked at once, and the sequence it begins ends at the next one at the latest. So
output that consists of introducers only cannot make the search quadratic.
"""

from __future__ import annotations

import re

_STRING = r"(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])"
_BODY = r"[^\x07\x1b\x80-\x9f\n]*+"
_ORDER = r"(?:\x1b\[|\x9b)[0-?]{0,256}+[ -/]{0,16}+"
_OTHER = r"\x1b[ -/]{0,16}+"
_SEQUENCE = re.compile(
    rf"{_STRING}{_BODY}(?:\x07|\x1b\\|\x9c)"  # titles, links, the clipboard, device strings
    rf"|{_ORDER}[@-~]"  # colours, movements of the cursor, modes
    rf"|{_OTHER}[0-Z\\^-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

UNFINISHED = re.compile(rf"(?:{_STRING}{_BODY}\x1b?|{_ORDER}|{_OTHER})\Z")
"""The end of a text in which a sequence has begun that may continue."""
OPEN_STRING = re.compile(rf"{_STRING}{_BODY}\Z")
"""The same, for a sequence that continues up to a `STRING_END`."""
STRING_END = re.compile(r"[\x07\x1b\x80-\x9f\n]")


def plain(text: str) -> str:
    """Return the text without escapes and control characters. A carriage return is a newline."""
    text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text)

"""Text without orders to a terminal: what is left of a program's output, and of a secret in it.

Every opener is looked at once, and what it opens ends at the next one at the latest: a stranger
who prints nothing but openers must not make us look from each of them to the end.
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
"""The end of a text in which a sequence has begun that may go on."""
OPEN_STRING = re.compile(rf"{_STRING}{_BODY}\Z")
"""The same, where it goes on with whatever is no `STRING_END`."""
STRING_END = re.compile(r"[\x07\x1b\x80-\x9f\n]")


def plain(text: str) -> str:
    """The text without escapes and control characters. A carriage return is a new line."""
    text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text)

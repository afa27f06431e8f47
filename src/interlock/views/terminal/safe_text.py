"""Text of agents and files, made harmless for a terminal. All that is shown goes through here.

An escape sequence moves the cursor, renames the window or answers for the user; a bidi override
shows a path that is not there; a zero-width character makes two names look alike. None of it is
needed to read a line, so none of it is let through.
"""

from __future__ import annotations

import re
import unicodedata

LIMIT = 4_000
"""No line that is shown is longer. Where it is cut to fit, it is cut further."""
_MARKS = 3
"""So many accents may sit on one character; more of them only paint over the neighbours."""

# Control sequences, then strings with their end, then any other escape. A string without an end is
# no reason to hide what follows: it loses what made it one, and is shown. Another opener ends it:
# or a text of nothing but openers would be looked through from each of them.
_SEQUENCES = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]*+ [ -/]*+ [@-~]
    | (?: \x1b[P\]X^_] | [\x90\x98\x9d\x9e\x9f] ) [^\x07\x1b\x80-\x9f]*+ (?: \x07 | \x1b\\ | \x9c )
    | \x1b [ -/]*+ [0-OQ-WYZ`-~]
    """,
    re.VERBOSE,
)
_BREAKS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# With these, and with joiners (which are left out with all that is invisible), terminals do not
# agree how wide an emoji is. Without them they do.
_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))


def line(text: str) -> str:
    """The text as one line: breaks and tabs are spaces, whatever is no text is left out."""
    if len(text) <= LIMIT and text.isascii() and text.isprintable():
        return text
    # What is cut off here could have become part of the line only if most before it had not.
    text = _SEQUENCES.sub("", text[: 4 * LIMIT])
    return "".join(_readable(_BREAKS.sub(" ", text)))[:LIMIT]


def lines(text: str) -> list[str]:
    """The text as lines, each of them harmless."""
    return [line(each) for each in _BREAKS.split(_SEQUENCES.sub("", text))]


def _readable(text: str) -> list[str]:
    kept: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category == "Zs" or character == "\t":
            kept.append(" ")
        elif category == "Cs":
            kept.append("\ufffd")  # half a character: it cannot even be written
        elif character in _SELECTORS or marks > _MARKS:
            continue
        elif category[0] != "C" or category == "Co":
            kept.append(character)
    return kept

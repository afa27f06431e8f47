"""Makes text of agents and files safe for a terminal. Everything that is shown passes through here.

An escape sequence can move the cursor, rename the window or answer for the user; a bidi override
can show a path that does not exist; a zero-width character can make two names look alike. None of
these is needed to read a line, so all of them are removed.
"""

from __future__ import annotations

import re
import unicodedata

LIMIT = 4_000
"""The maximum length of a line, before it is cut to fit the terminal."""
_MARKS = 3
"""How many combining characters one character may have; more would cover its neighbours."""

# Control sequences, then terminated strings, then any other escape. An unterminated string must not
# hide what follows: only its opener is removed. Another opener ends a string: otherwise a text of
# nothing but openers would be scanned to its end from each of them.
_SEQUENCES = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]*+ [ -/]*+ [@-~]
    | (?: \x1b[P\]X^_] | [\x90\x98\x9d\x9e\x9f] ) [^\x07\x1b\x80-\x9f]*+ (?: \x07 | \x1b\\ | \x9c )
    | \x1b [ -/]*+ [0-OQ-WYZ`-~]
    """,
    re.VERBOSE,
)
_BREAKS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Terminals disagree about the width of an emoji with a variation selector or a joiner. Joiners are
# removed with everything that is invisible, and these as well.
_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))


def line(text: str) -> str:
    """The text as one safe line: breaks and tabs become spaces, everything unsafe is removed."""
    if len(text) <= LIMIT and text.isascii() and text.isprintable():
        return text
    # What is cut off here could only matter if most of what precedes it were removed.
    text = _SEQUENCES.sub("", text[: 4 * LIMIT])
    return "".join(_readable(_BREAKS.sub(" ", text)))[:LIMIT]


def lines(text: str) -> list[str]:
    """The text as safe lines."""
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
            kept.append("\ufffd")  # half a character: it cannot be encoded
        elif character in _SELECTORS or marks > _MARKS:
            continue
        elif category[0] != "C" or category == "Co":
            kept.append(character)
    return kept

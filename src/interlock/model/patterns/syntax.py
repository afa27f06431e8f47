"""Reading the text of a path pattern: from characters to tokens, with the braces expanded.

The language is described in `pattern.py`. Braces are expanded while reading, with one frame per
open brace. So neither deep nesting nor `{a,b}{a,b}{a,b}...` can exhaust the machine before the
limit on alternatives is reached.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple, TypeAlias

from interlock.errors import InvalidPattern
from interlock.model.patterns import charset
from interlock.model.patterns.charset import CharSet
from interlock.model.patterns.segment import RUN, Piece

MAX_ALTERNATIVES = 256
"""How many paths the braces of one pattern may stand for."""


class Token(NamedTuple):
    """A literal character (`/` separates), a set of characters or `*`, with its position."""

    at: int
    value: str | Piece


Tokens: TypeAlias = list[Token]


class _Brace(NamedTuple):
    """An open brace: what came before it, and the options that are complete."""

    at: int
    before: list[Tokens]
    options: list[Tokens]


def expand_braces(text: str, *, fold_case: bool) -> list[Tokens]:
    """Return the tokens of each alternative. None of them is blank."""
    return _Reader(text, fold_case).expand()


def invalid(text: str, at: int, problem: str) -> InvalidPattern:
    """Return the error for a position of the NFC form, at the position in the text as written."""
    for end in range(1, len(text) + 1):
        if len(unicodedata.normalize("NFC", text[:end])) > at:
            return InvalidPattern(text, end - 1, problem)
    return InvalidPattern(text, len(text), problem)


class _Reader:
    """Reads tokens from left to right into every alternative that they belong to."""

    def __init__(self, text: str, fold_case: bool) -> None:
        self.written = text
        self.text = unicodedata.normalize("NFC", text)
        self.fold_case = fold_case
        self.at = 0

    def expand(self) -> list[Tokens]:
        """Return the token sequences that the braces stand for."""
        current: list[Tokens] = [[]]
        open_braces: list[_Brace] = []
        while self.at < len(self.text):
            start, char = self.at, self.text[self.at]
            self.at += 1
            if char == "{":
                open_braces.append(_Brace(start, current, []))
                current = [[]]
            elif char == "," and open_braces:
                open_braces[-1].options.extend(current)
                current = [[]]
            elif char == "}":
                if not open_braces:
                    raise self._error(start, "a '}' without a '{'; write '\\}' for the character")
                current = self._close(open_braces.pop(), current)
            else:
                token = Token(start, self._value(start, char))
                for tokens in current:
                    tokens.append(token)
        if open_braces:
            raise self._error(open_braces[-1].at, "this '{' is never closed")
        if not all(current):  # Only if the text begins with a brace.
            raise self._error(0, "one alternative of the braces is blank; leave it out")
        return current

    def _close(self, brace: _Brace, last: list[Tokens]) -> list[Tokens]:
        options = brace.options + last
        if len(brace.before) * len(options) > MAX_ALTERNATIVES:
            problem = (
                f"the braces stand for more than {MAX_ALTERNATIVES} paths; use several patterns"
            )
            raise self._error(brace.at, problem)
        return [before + option for before in brace.before for option in options]

    def _value(self, start: int, char: str) -> str | Piece:
        if char == "*":
            return RUN
        if char == "?":
            return charset.ANY_CHAR
        if char == "[":
            return self._class(start)
        if char == "\\":
            return self._escaped(start)
        if char == "\0":
            raise self._error(start, "a path cannot hold a NUL character")
        return char

    def _escaped(self, start: int) -> str:
        if self.at >= len(self.text):
            raise self._error(start, "a backslash with nothing after it")
        char = self.text[self.at]
        if char == "\0":
            raise self._error(self.at, "a path cannot hold a NUL character")
        self.at += 1
        return char

    def _class(self, start: int) -> CharSet:
        negated = self._peek() in ("!", "^")
        self.at += negated
        ranges: list[charset.Interval] = []
        first_member = self.at
        while self._peek() != "]" or self.at == first_member:
            low_at = self.at
            low = high = self._member(start)
            if self._peek() == "-" and self._peek(1) not in ("]", ""):
                self.at += 1
                high = self._member(start)
            if high < low:
                raise self._error(low_at, f"the range {low}-{high} is the wrong way round")
            ranges.append((ord(low), ord(high)))
        self.at += 1
        members = charset.of(ranges)
        if not self.fold_case:
            return charset.complement(members) if negated else members
        members = charset.folded(members)
        return charset.complement(charset.all_spellings(members)) if negated else members

    def _member(self, start: int) -> str:
        if self.at >= len(self.text):
            raise self._error(start, "this '[' is never closed; write '\\[' for the character")
        char = self.text[self.at]
        self.at += 1
        return self._escaped(self.at - 1) if char == "\\" else char

    def _peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def _error(self, at: int, problem: str) -> InvalidPattern:
        return invalid(self.written, at, problem)

"""Redaction: declared secrets never reach the disk, nor an agent that was not given them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from interlock.errors import InvalidOption
from interlock.model.plain_text import plain

HIDDEN = "***"
SHORTEST = 4
"""A shorter secret would be found in ordinary words everywhere."""
_LONG_LINE = 16
"""A line this long of a secret of several lines is a secret by itself."""


def spellings(secret: str) -> set[str]:
    """Return the forms in which a secret may appear: as is, printed, in JSON, and line by line.

    Other encodings (base64, percent signs, one letter per line) are not searched for.
    """
    whole = {secret, secret.strip(), plain(secret), plain(secret).strip()}
    lines = {line.strip() for each in whole for line in each.split("\n")}
    # The first and last lines of key files are the same in all of them.
    lines = {each for each in lines if len(each) >= _LONG_LINE and not each.startswith("-----")}
    found = {form for each in whole | lines for form in _in_json(each)}
    return {each for each in found if len(each) >= SHORTEST}


def _in_json(text: str) -> Iterator[str]:
    yield text
    for encoded in (_as_json(text), json.dumps(text)[1:-1]):
        yield encoded
        yield encoded.replace("/", "\\/")
        yield plain(encoded)


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class Redaction:
    """Replaces secrets by `***` in text, in any of their `spellings`."""

    def __init__(self, secrets: Iterable[str]) -> None:
        given = {each for each in secrets if each}
        for each in given:
            if len(each) < SHORTEST:
                raise InvalidOption(
                    f"a secret of {len(each)} characters would be found everywhere; "
                    f"give secrets of {SHORTEST} or more"
                )
        # The longest first: one secret may be the beginning of another.
        listed = sorted({form for each in given for form in spellings(each)}, key=len, reverse=True)
        self._listed = listed
        self._as_json = [_as_json(each) for each in listed]
        self._text = re.compile("|".join(map(re.escape, listed))) if listed else None
        encoded = [re.escape(each.encode("utf-8", "surrogatepass")) for each in listed]
        self._bytes = re.compile(b"|".join(encoded)) if listed else None

    def __bool__(self) -> bool:
        return self._text is not None

    def may_be_in(self, encoded: str) -> bool:
        """Whether JSON text may contain a secret: a quick test that misses none."""
        return any(each in encoded for each in self._as_json)

    def is_in(self, text: str) -> bool:
        """Whether text contains a secret."""
        return any(each in text for each in self._listed)

    def stream(self) -> RedactedStream:
        """Return a redactor for text that arrives in pieces, split anywhere."""
        return RedactedStream(self._listed, self._text)

    def text(self, text: str) -> str:
        return text if self._text is None else self._text.sub(HIDDEN, text)

    def bytes(self, data: bytes) -> bytes:
        return data if self._bytes is None else self._bytes.sub(HIDDEN.encode(), data)

    def tree(self, value: Any) -> Any:
        """Return JSON data without secrets. Decoded, because escapes contain letters too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.tree(each) for each in value]
        if isinstance(value, dict):
            return {
                self.text(name): each if name == "$" else self.tree(each)
                for name, each in value.items()
            }
        return value


class RedactedStream:
    """Takes in pieces of text and returns them without secrets.

    The end of a piece is held back only where it could be the beginning of a secret, so a line can
    be seen as soon as it is complete.
    """

    def __init__(self, longest_first: Sequence[str], pattern: re.Pattern[str] | None) -> None:
        self._secrets = longest_first
        self._pattern = pattern
        self._longest = len(longest_first[0]) if longest_first else 0
        self._kept = ""

    def take(self, piece: str) -> str:
        """Take in a piece, and return what can be shown by now."""
        if self._pattern is None:
            return piece
        text, at, given = self._kept + piece, 0, []
        if any(each in text for each in self._secrets):
            for found in self._pattern.finditer(text):
                near = found.start() > len(text) - self._longest
                if near and found.start() >= self._unfinished(text, at):
                    break  # A longer secret that began before may contain this one.
                given += [text[at : found.start()], HIDDEN]
                at = found.end()
        cut = self._unfinished(text, at)
        self._kept = text[cut:]
        return "".join([*given, text[at:cut]])

    def rest(self) -> str:
        """Return what was held back: no more pieces will come."""
        kept, self._kept = self._kept, ""
        return self._pattern.sub(HIDDEN, kept) if self._pattern is not None else ""

    def _unfinished(self, text: str, at: int) -> int:
        """Return where the longest suffix after `at` begins that is a prefix of a secret."""
        base = max(at, len(text) - self._longest + 1)
        tail = text[base:]
        first = len(tail)
        for secret in self._secrets:
            # Of all positions at which its first letters stand, the earliest from which it fits.
            begin = tail.find(secret[:SHORTEST])
            while 0 <= begin < first:
                if len(tail) - begin < len(secret) and secret.startswith(tail[begin:]):
                    first = begin
                begin = tail.find(secret[:SHORTEST], begin + 1)
            for length in range(1, SHORTEST):
                if len(tail) - length < first and tail.endswith(secret[:length]):
                    first = len(tail) - length
        return base + first

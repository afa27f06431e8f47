"""Secrets that were declared never reach the disk, nor anybody who was not given them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from interlock.errors import InvalidOption
from interlock.model.plain_text import plain

HIDDEN = "***"
SHORTEST = 4
"""A shorter one would be found in innocent words all over the record."""
_LONG_LINE = 16
"""Of a secret of several lines, a line as long as this is one by itself."""


def spellings(secret: str) -> set[str]:
    """A secret as it may be written: as it is, as it is printed, as JSON has it, and in lines.

    Other codes (base64, percent signs, one letter a line) are not looked for.
    """
    whole = {secret, secret.strip(), plain(secret), plain(secret).strip()}
    lines = {line.strip() for each in whole for line in each.split("\n")}
    # The first and last line of a key file are those of every other one.
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
    """Replaces secrets by `***`, wherever text holds one, in any of its `spellings`."""

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
        """Whether JSON text may hold a secret: a quick look that misses none."""
        return any(each in encoded for each in self._as_json)

    def is_in(self, text: str) -> bool:
        """Whether text holds a secret."""
        return any(each in text for each in self._listed)

    def stream(self) -> RedactedStream:
        """For text that comes in pieces, in the middle of a secret too."""
        return RedactedStream(self._listed, self._text)

    def text(self, text: str) -> str:
        return text if self._text is None else self._text.sub(HIDDEN, text)

    def bytes(self, data: bytes) -> bytes:
        return data if self._bytes is None else self._bytes.sub(HIDDEN.encode(), data)

    def tree(self, value: Any) -> Any:
        """JSON data without secrets. Only whole texts are looked at: escapes have letters too."""
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
    """Takes in pieces of text and gives them out without secrets.

    The end of what came is kept back only where it could be the beginning of a secret, so that a
    line can be seen as soon as it is complete.
    """

    def __init__(self, longest_first: Sequence[str], pattern: re.Pattern[str] | None) -> None:
        self._secrets = longest_first
        self._pattern = pattern
        self._longest = len(longest_first[0]) if longest_first else 0
        self._kept = ""

    def take(self, piece: str) -> str:
        """What can be given out now that this has come, too."""
        if self._pattern is None:
            return piece
        text, at, given = self._kept + piece, 0, []
        if any(each in text for each in self._secrets):
            for found in self._pattern.finditer(text):
                near = found.start() > len(text) - self._longest
                if near and found.start() >= self._unfinished(text, at):
                    break  # a longer secret that has begun before may hold this one
                given += [text[at : found.start()], HIDDEN]
                at = found.end()
        cut = self._unfinished(text, at)
        self._kept = text[cut:]
        return "".join([*given, text[at:cut]])

    def rest(self) -> str:
        """What was kept back, now that nothing more will come."""
        kept, self._kept = self._kept, ""
        return self._pattern.sub(HIDDEN, kept) if self._pattern is not None else ""

    def _unfinished(self, text: str, at: int) -> int:
        """Where the longest end of the text, from `at` on, begins with which a secret begins."""
        base = max(at, len(text) - self._longest + 1)
        tail = text[base:]
        first = len(tail)
        for secret in self._secrets:
            # Of every place where its first letters stand, the earliest from which all fits.
            begin = tail.find(secret[:SHORTEST])
            while 0 <= begin < first:
                if len(tail) - begin < len(secret) and secret.startswith(tail[begin:]):
                    first = begin
                begin = tail.find(secret[:SHORTEST], begin + 1)
            for length in range(1, SHORTEST):
                if len(tail) - length < first and tail.endswith(secret[:length]):
                    first = len(tail) - length
        return base + first

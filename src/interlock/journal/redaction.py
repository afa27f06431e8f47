"""Secrets that were declared never reach the disk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from interlock.errors import InvalidOption

HIDDEN = "***"
SHORTEST = 4
"""A shorter one would be found in innocent words all over the record."""


class Redaction:
    """Replaces secrets by `***`, wherever text holds one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        listed = sorted({each for each in secrets if each}, key=len, reverse=True)
        for each in listed:
            if len(each) < SHORTEST:
                raise InvalidOption(
                    f"a secret of {len(each)} characters would be found everywhere; "
                    f"give secrets of {SHORTEST} or more"
                )
        self._as_json = [json.dumps(each, ensure_ascii=False)[1:-1] for each in listed]
        # The longest first: one secret may be the beginning of another.
        self._text = re.compile("|".join(map(re.escape, listed))) if listed else None
        encoded = [re.escape(each.encode("utf-8", "surrogatepass")) for each in listed]
        self._bytes = re.compile(b"|".join(encoded)) if listed else None

    def __bool__(self) -> bool:
        return self._text is not None

    def may_be_in(self, encoded: str) -> bool:
        """Whether JSON text may hold a secret: a quick look that misses none."""
        return any(each in encoded for each in self._as_json)

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

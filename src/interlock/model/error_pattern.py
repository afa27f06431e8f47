r"""Patterns that lines of a stranger's output are searched for: none may take for ever on one.

Python's `re` tries all ways in which a pattern can match. What is repeated without a bound and can
itself match in several ways has more of them than there is time for: `(\w+\s?)+:` on 40 letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from interlock.errors import InvalidOption

_FEW = 8
"""What is repeated no more often than this could as well be written out."""


def checked_patterns(kind: str, given: Iterable[str]) -> tuple[str, ...]:
    """The patterns for a kind of failure; InvalidOption for what is none, or may take for ever."""
    listed = (given,) if isinstance(given, str) else tuple(given)
    for each in listed:
        try:
            re.compile(each)
            explodes = _explodes(_parser.parse(each))
        except (re.error, TypeError, RecursionError) as error:
            raise InvalidOption(f"errors: {each!r}, for {kind}, is no pattern: {error}") from None
        if explodes:
            raise InvalidOption(
                f"errors: {each!r}, for {kind}, repeats something that can match in several ways "
                "(a repeat or alternatives inside of a repeat), which may take for ever on one "
                "line; say less, or make it match in one way: (?>...), or *+ and ++"
            )
    return listed


def _explodes(parts: Any) -> bool:
    """Whether something that varies is repeated often."""
    for kind, given in parts:
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT) and given[1] > _FEW and _varies(given[2]):
            return True
        if any(map(_explodes, _inside(given))):
            return True
    return False


def _varies(parts: Any) -> bool:
    """Whether it can match the same text in several ways."""
    for kind, given in parts:
        if kind in (code.ATOMIC_GROUP, code.POSSESSIVE_REPEAT, code.ASSERT, code.ASSERT_NOT):
            continue  # the first way is the only one
        if kind in (code.BRANCH, code.GROUPREF_EXISTS):
            return True
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT) and given[0] != given[1]:
            return True
        if any(map(_varies, _inside(given))):
            return True
    return False


def _inside(given: Any) -> list[Any]:
    """The patterns that a part of one is made of."""
    if isinstance(given, _parser.SubPattern):
        return [given]
    if isinstance(given, (tuple, list)):
        return [found for each in given for found in _inside(each)]
    return []

r"""Patterns that the output of programs is searched for: none may take exponential time.

Python's `re` backtracks through all ways in which a pattern can match. Something that is repeated
without a bound and can itself match in several ways has exponentially many: `(\w+\s?)+:` on 40
letters. Such patterns are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from interlock.errors import InvalidOption

_FEW = 8
"""Something that is repeated at most this often could as well be written out."""


def checked_patterns(kind: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns for a kind of failure; raise for an invalid or exponential one."""
    listed = (given,) if isinstance(given, str) else tuple(given)
    for each in listed:
        try:
            re.compile(each)
            explodes = _explodes(_parser.parse(each))
        except (re.error, TypeError, RecursionError) as error:
            raise InvalidOption(
                f"errors: {each!r}, for {kind}, is not a valid pattern: {error}"
            ) from None
        if explodes:
            raise InvalidOption(
                f"errors: {each!r}, for {kind}, repeats something that can match in several ways "
                "(a repeat or alternatives inside a repeat), which may take for ever on one line; "
                "simplify it, or let it match in one way: (?>...), or *+ and ++"
            )
    return listed


def _explodes(parts: Any) -> bool:
    """Whether something that can match in several ways is repeated often."""
    for kind, given in parts:
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT) and given[1] > _FEW and _varies(given[2]):
            return True
        if any(map(_explodes, _inside(given))):
            return True
    return False


def _varies(parts: Any) -> bool:
    """Whether this can match the same text in several ways."""
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
    """Return the patterns inside a part of one."""
    if isinstance(given, _parser.SubPattern):
        return [given]
    if isinstance(given, (tuple, list)):
        return [found for each in given for found in _inside(each)]
    return []

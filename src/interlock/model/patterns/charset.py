"""Sets of characters as sorted, disjoint intervals of code points.

A character here is one that a name may contain: any code point except NUL and `/`. With intervals
`[!a]` is as small as `[a]`, so overlaps are decided without walking through Unicode.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

Interval: TypeAlias = tuple[int, int]
"""First and last code point, both included."""
CharSet: TypeAlias = tuple[Interval, ...]

_LAST = 0x10FFFF
_LAST_CASED = 0x1E943
_READABLE = "xabcdefghijklmnopqrstuvwyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

ANY_CHAR: CharSet = ((1, ord("/") - 1), (ord("/") + 1, _LAST))


def of(intervals: Iterable[Interval]) -> CharSet:
    """Return the characters of intervals, which may touch, overlap, or contain NUL and `/`."""
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return intersection(tuple(merged), ANY_CHAR)


def single(char: str) -> CharSet:
    """Return the set of one character."""
    return ((ord(char), ord(char)),)


def contains(chars: CharSet, char: str) -> bool:
    """Whether the character is in the set."""
    code = ord(char)
    return any(first <= code <= last for first, last in chars)


def intersection(a: CharSet, b: CharSet) -> CharSet:
    """Return the characters in both sets."""
    common: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        first, last = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if first <= last:
            common.append((first, last))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def complement(chars: CharSet) -> CharSet:
    """Return all characters that are not in the set."""
    gaps: list[Interval] = []
    start = 0
    for first, last in chars:
        gaps.append((start, first - 1))
        start = last + 1
    gaps.append((start, _LAST))
    return intersection(tuple(gap for gap in gaps if gap[0] <= gap[1]), ANY_CHAR)


def readable(chars: CharSet) -> str | None:
    """Return a character of the set, a readable one if possible; None if the set is empty."""
    for char in _READABLE:
        if contains(chars, char):
            return char
    for first, last in chars:
        for code in range(first, min(last, first + 256) + 1):
            if chr(code).isprintable() and not chr(code).isspace():
                return chr(code)
    return chr(chars[0][0]) if chars else None


def folded(chars: CharSet) -> CharSet:
    """Return the set with each character in its case-folded form.

    The few that fold to more than one character, such as `ß`, stay as they are: a class stands
    for one character.
    """
    folds = _folds()
    changed = [code for code in folds if contains(chars, chr(code))]
    kept = intersection(chars, complement(of((code, code) for code in changed)))
    return of([*kept, *((folds[code], folds[code]) for code in changed)])


def all_spellings(chars: CharSet) -> CharSet:
    """Add every character that folds to one of the set: what a negated class excludes."""
    also = [(code, code) for code, fold in _folds().items() if contains(chars, chr(fold))]
    return of([*chars, *also])


def fold_character(char: str) -> str:
    """Return a character without its case; unchanged if that would take several characters."""
    folded = char.casefold()
    return folded if len(folded) == 1 else char


@cache
def _folds() -> dict[int, int]:
    """Map each code point that folds to another single one to that one."""
    pairs = ((code, ord(fold_character(chr(code)))) for code in range(_LAST_CASED + 1))
    return {code: fold for code, fold in pairs if fold != code}

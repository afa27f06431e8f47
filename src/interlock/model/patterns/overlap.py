"""Whether two patterns have a path in common: exactly, and which one.

What is decided. Each pattern stands for the paths that its segments match; a literal last name is
just that name. Two patterns overlap where these paths meet; or where the last name of one, if it is
literal, falls on a name that the other spells out and continues below. That says it is a folder,
and then everything below it is meant. So `packages/*/src` overlaps `packages/a/src/*.py` and
`**/src/x.py`. Wildcards alone make no folder of a literal last name: `**/*.md` and `src/a.py` do
not overlap. Otherwise nearly everything would conflict, because of paths such as `src/a.py/x.md`.

How. Patterns are small automata on two levels. On the level of paths, a table over both positions
tells from where the two ends can be reached together (`common_path`); a step is a name that both
segments match. On the level of names, a search over both positions does the same with characters
(`common_name`), and counts leading dots, because `.` and `..` are spelled like names but are none.

Why it is exact. Both levels decide whether the intersection of two regular languages is empty, by
reachability in the product of two automata. A product state is a pair of positions, so there are
as many as the product of the lengths: polynomial, however many `*` and `**` there are. The witness
is read off the way to the end, so each positive answer proves itself; negative answers are compared
with brute force in `tests/unit/model/test_overlap_exact.py`.

Costs: a pair of literal paths is one comparison of prefixes; a pair that differs in its prefix or
suffix ends there; the rest is the table, cached by segments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from interlock.model.patterns import charset
from interlock.model.patterns.pattern import Alternative, Pattern
from interlock.model.patterns.segment import DEPTH, RUN, Glob, Piece, Segment

_ANY_NAME: Final = Glob((RUN,))
_DOT: Final = charset.single(".")
_NOT_A_DOT: Final = charset.complement(_DOT)

_Segments: TypeAlias = tuple[Segment, ...]
_Tail: TypeAlias = "tuple[()] | tuple[str, _Tail]"
"""The end of a path as a linked list: a name, then the rest."""
_Spelling: TypeAlias = tuple[int, int, int]
"""The position in each glob, and the leading dots so far; 3 means that it is a proper name."""
_PROPER: Final = 3


def overlap(a: Pattern, b: Pattern) -> str | None:
    """Return a path that both patterns match; None if they do not overlap."""
    for one in a.alternatives:
        for other in b.alternatives:
            witness = alternatives_overlap(one, other)
            if witness is not None:
                return witness
    return None


def alternatives_overlap(a: Alternative, b: Alternative) -> str | None:
    """Return a path that both alternatives match; None if they do not overlap."""
    depth, other_depth = len(a.prefix), len(b.prefix)
    if depth > other_depth or (depth == other_depth and (b.is_plain or b.is_subtree)):
        a, b, depth = b, a, other_depth
    if b.prefix[:depth] != a.prefix:
        return None
    if not (a.is_plain or a.is_subtree):
        if a.ends_apart(b):
            return None
        start, below = a.prefix, common_path(a.rest, b.prefix[depth:] + b.rest)
    elif b.is_plain or b.is_subtree:
        start, below = b.prefix, ()
    else:  # All of b is at or below the prefix of a, which b spells out.
        start, below = b.prefix, any_path(b.rest)
    return None if below is None else "/".join(start + below) or "x"


def any_path(segments: _Segments) -> tuple[str, ...] | None:
    """Return the names of a path that the segments match; None if no path can."""
    return common_path(segments, (DEPTH,))


@lru_cache(maxsize=1 << 16)
def common_path(a: _Segments, b: _Segments) -> tuple[str, ...] | None:
    """Return the names of a path, possibly none, in which both sequences of segments overlap."""
    # tails[i][j] is a path in which a[i:] and b[j:] overlap. The table is filled from the ends
    # backwards, so each entry needs only entries that are there already.
    tails: list[list[_Tail | None]] = [[None] * (len(b) + 1) for _ in range(len(a) + 1)]
    tails[len(a)][len(b)] = ()
    for i in range(len(a), -1, -1):
        for j in range(len(b), -1, -1):
            if tails[i][j] is None:
                tails[i][j] = _tail(a, i, b, j, tails)
    found = tails[0][0]
    return None if found is None else tuple(_names(found))


def _tail(
    a: _Segments, i: int, b: _Segments, j: int, tails: list[list[_Tail | None]]
) -> _Tail | None:
    x = a[i] if i < len(a) else None
    y = b[j] if j < len(b) else None
    if x is DEPTH and (skipped := tails[i + 1][j]) is not None:
        return skipped
    if y is DEPTH and (skipped := tails[i][j + 1]) is not None:
        return skipped
    if x is None or y is None or (x is DEPTH and y is DEPTH):
        return None
    rest = tails[i if x is DEPTH else i + 1][j if y is DEPTH else j + 1]
    if rest is None and isinstance(x, str) and x == y:
        rest = _below_the_end(a, i + 1, b, j + 1)
    if rest is None:
        return None
    name = common_name(x, y)
    return None if name is None else (name, rest)


def _below_the_end(a: _Segments, i: int, b: _Segments, j: int) -> _Tail | None:
    """Return how one continues below a name that both spell out, if the other ends with it."""
    if i < len(a) and j < len(b):
        return None
    names = any_path(a[i:] or b[j:])
    if names is None:
        return None
    tail: _Tail = ()
    for name in reversed(names):
        tail = (name, tail)
    return tail


def _names(tail: _Tail) -> Iterator[str]:
    while tail:
        name, tail = tail
        yield name


def common_name(x: Segment, y: Segment) -> str | None:
    """Return a name that both segments match, with `**` taken for a single name."""
    if isinstance(x, str):
        return x if _allows(y, x) else None
    if isinstance(y, str):
        return y if _allows(x, y) else None
    return _common_spelling(_ANY_NAME if x is DEPTH else x, _ANY_NAME if y is DEPTH else y)


def _allows(segment: Segment, name: str) -> bool:
    if isinstance(segment, str):
        return segment == name
    return segment is DEPTH or segment.matches(name)


@lru_cache(maxsize=1 << 16)
def _common_spelling(a: Glob, b: Glob) -> str | None:
    if not _agree(a.head, b.head) or not _agree(a.tail[::-1], b.tail[::-1]):
        return None
    start: _Spelling = (0, 0, 0)
    came_from: dict[_Spelling, tuple[_Spelling, str]] = {start: (start, "")}
    end = (len(a.pieces), len(b.pieces), _PROPER)
    # Names that begin with a dot come last: the witness is shown to people.
    todo, dotted = deque([start]), deque[_Spelling]()
    while todo or dotted:
        here = todo.popleft() if todo else dotted.popleft()
        if here == end:
            return _spelled(came_from, end)
        for there, char in _moves(a.pieces, b.pieces, here):
            if there not in came_from:
                came_from[there] = here, char
                (dotted if char == "." and here[2] == 0 else todo).append(there)
    return None


def _agree(a: str, b: str) -> bool:
    return a.startswith(b) or b.startswith(a)


def _moves(
    a: tuple[Piece, ...], b: tuple[Piece, ...], here: _Spelling
) -> Iterator[tuple[_Spelling, str]]:
    i, j, dots = here
    x = a[i] if i < len(a) else None
    y = b[j] if j < len(b) else None
    if x is RUN:
        yield (i + 1, j, dots), ""
    if y is RUN:
        yield (i, j + 1, dots), ""
    if x is None or y is None:
        return
    char, dot = _common_characters(x, y)
    next_i, next_j = (i if x is RUN else i + 1), (j if y is RUN else j + 1)
    if char is not None:
        yield (next_i, next_j, _PROPER), char
    if dot:
        yield (next_i, next_j, min(dots + 1, _PROPER)), "."


@lru_cache(maxsize=1 << 14)
def _common_characters(x: Piece, y: Piece) -> tuple[str | None, bool]:
    """Return a character other than a dot that both pieces take; and whether both take a dot."""
    both = charset.intersection(
        charset.ANY_CHAR if x is RUN else x, charset.ANY_CHAR if y is RUN else y
    )
    other = charset.readable(charset.intersection(both, _NOT_A_DOT))
    return other, charset.contains(both, ".")


def _spelled(came_from: dict[_Spelling, tuple[_Spelling, str]], end: _Spelling) -> str:
    chars: list[str] = []
    here = end
    while here != (0, 0, 0):
        here, char = came_from[here]
        chars.append(char)
    return "".join(reversed(chars))

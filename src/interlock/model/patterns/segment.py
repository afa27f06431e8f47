"""One segment of a path pattern: a literal name, a name with wildcards, or `**`.

Both levels of a pattern have the same shape. A name is a sequence of characters matched by pieces,
one of which (`*`) takes any run of characters; a path is a sequence of names matched by segments,
one of which (`**`) takes any run of names. `fits` serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypeVar

from interlock.model.patterns.charset import CharSet, contains

_Step = TypeVar("_Step")
_Item = TypeVar("_Item")


class Star(Enum):
    """The two wildcards that take any run, including the empty one."""

    RUN = "*"
    DEPTH = "**"


RUN: Final = Star.RUN
DEPTH: Final = Star.DEPTH

Piece: TypeAlias = CharSet | Literal[Star.RUN]


@dataclass(frozen=True, slots=True)
class Glob:
    """A name with wildcards, as pieces that each take one character or any run of characters."""

    pieces: tuple[Piece, ...]
    head: str = field(init=False, compare=False, repr=False)
    """The characters that every name it matches begins with."""
    tail: str = field(init=False, compare=False, repr=False)
    """The characters that every name it matches ends with."""
    # Globs are cache keys; hashing their nested tuples each time would dominate.
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "head", _fixed(self.pieces))
        set_field(self, "tail", _fixed(self.pieces[::-1])[::-1])
        set_field(self, "_hash", hash(self.pieces))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes differ between processes, so a copy in another one computes its own.
        return Glob, (self.pieces,)

    def matches(self, name: str) -> bool:
        """Whether the pieces match the name."""
        if not (name.startswith(self.head) and name.endswith(self.tail)):
            return False
        return fits(self.pieces, RUN, name, _takes)


Segment: TypeAlias = str | Glob | Literal[Star.DEPTH]


def names_match(segments: Sequence[Segment], names: Sequence[str]) -> bool:
    """Whether the segments, `**` among them, match exactly this sequence of names."""
    return fits(segments, DEPTH, names, _is_named)


def fits(
    steps: Sequence[_Step | Star],
    run: Star,
    items: Sequence[_Item],
    takes: Callable[[Any, _Item], bool],
) -> bool:
    """Whether the steps match all the items, where the step `run` takes any number of them.

    A run first takes nothing; at a mismatch the latest run takes one more. Earlier runs are never
    reconsidered: whatever they could give up, the latest one can take. Hence at most
    len(steps) * len(items) comparisons, however many runs there are.
    """
    at = item = 0
    latest_run, resume = -1, 0
    while item < len(items):
        if at < len(steps) and steps[at] is run:
            latest_run, resume = at, item
            at += 1
        elif at < len(steps) and takes(steps[at], items[item]):
            at += 1
            item += 1
        elif latest_run >= 0:
            resume += 1
            at, item = latest_run + 1, resume
        else:
            return False
    return all(step is run for step in steps[at:])


def _takes(chars: CharSet, char: str) -> bool:
    return contains(chars, char)


def _is_named(segment: str | Glob, name: str) -> bool:
    return segment == name if isinstance(segment, str) else segment.matches(name)


def _fixed(pieces: Sequence[Piece]) -> str:
    text = ""
    for piece in pieces:
        if piece is RUN or len(piece) != 1 or piece[0][0] != piece[0][1]:
            break
        text += chr(piece[0][0])
    return text

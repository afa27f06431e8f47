r"""Path patterns: which paths of the workspace a claim stands for.

A *path* is one or more names with `/` between them; a *name* is not empty, holds no `/` and no
NUL, and is neither `.` nor `..`. A pattern is written like this:

    src/api/a.py    that file; or, where it is a folder, everything below as well
    src/  src/**    the folder and everything below
    src/*.py        `*` takes any run of characters inside one name, a leading dot included
    **/test_?.py    `**` as a whole segment takes any number of names, none included;
                    `?` takes one character
    [abc] [a-z] [!a] [^a]   one character of (or not of) a class, never `/`; a `]` that comes
                    first is an ordinary member
    {a,b/c,}        alternatives; they nest, may hold slashes, and may be empty
    \*              the next character as it is

A pattern whose last segment is literal is *open-ended*: it may be a file or a folder, and only the
other side can tell. A path below it does tell: `packages/*/src` matches `packages/a/src/x.py`. So
does a pattern that spells out the name and continues below it, but not one whose wildcards merely
lead there: `src` overlaps `src/*.md`, but not `**/*.md` (see `overlap.py`). The runtime, which can
look at the disk, adds the slash where a plain name is a folder.

A pattern that ends in a segment with wildcards matches just those names: `src/*` does not match
`src/a/b`. `a**b` is `a*b`. `.`, `**` and `./` are the whole workspace. `~` is an ordinary name.

Spelling does not matter: `./src//a.py` and `src/x/../a.py` are `src/a.py`, and text is compared
in Unicode form NFC. With `fold_case`, for file systems that ignore case, so are `SRC` and `src`.
Paths are compared as sequences of code points in that form. Symlinks are resolved by the runtime.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, cast

from interlock.errors import InvalidPattern
from interlock.model.patterns.normal_form import normal_segments, normal_text
from interlock.model.patterns.segment import DEPTH, Glob, Segment, names_match

_LONGEST: Final = 4096
_DEEPEST: Final = 128
"""As long and as deep as paths get. More is a mistake, or an attack on our time and memory."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way through the braces of a pattern: literal names first, then the rest."""

    prefix: tuple[str, ...]
    """The leading literal names."""
    rest: tuple[Segment, ...]
    """The remaining segments: none for a plain path, just `**` for a literal subtree."""
    is_plain: bool = field(init=False, compare=False, repr=False)
    """Whether this is a path without wildcards, and without a slash at its end."""
    is_subtree: bool = field(init=False, compare=False, repr=False)
    """Whether exactly what is at and below `prefix` is meant, as by `src/`."""
    open_end: bool = field(init=False, compare=False, repr=False)
    """Whether the last segment is literal, so that it may turn out to be a folder."""
    spelled: frozenset[str] = field(init=False, compare=False, repr=False)
    """The names that are spelled out as folders on the way."""
    head: str = field(init=False, compare=False, repr=False)
    """What the last name begins with, and `tail` what it ends with, as far as that is fixed."""
    tail: str = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        if not self.prefix and not self.rest:
            set_field(self, "rest", (DEPTH,))  # No name at all: the workspace.
        set_field(self, "is_plain", not self.rest)
        set_field(self, "is_subtree", self.rest == (DEPTH,))
        set_field(self, "open_end", not self.rest or isinstance(self.rest[-1], str))
        *way, last = self.prefix + self.rest
        set_field(self, "spelled", frozenset(name for name in way if isinstance(name, str)))
        fixed = last if isinstance(last, str) else ""
        set_field(self, "head", last.head if isinstance(last, Glob) else fixed)
        set_field(self, "tail", last.tail if isinstance(last, Glob) else fixed)
        set_field(self, "_hash", hash((self.prefix, self.rest)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes differ between processes, so a copy in another one computes its own.
        return Alternative, (self.prefix, self.rest)

    def ends_apart(self, other: Alternative) -> bool:
        """Whether the last names alone rule out an overlap. Settles most pairs."""
        tail, other_tail = self.tail, other.tail
        if tail.endswith(other_tail) or other_tail.endswith(tail):
            head, other_head = self.head, other.head
            if head.startswith(other_head) or other_head.startswith(head):
                return False
        # A literal last name may still be one that the other spells out as a folder.
        return not (
            (self.open_end and tail in other.spelled)
            or (other.open_end and other_tail in self.spelled)
        )

    def matches(self, names: tuple[str, ...]) -> bool:
        """Whether the path of these names is meant, or is below an open end."""
        depth = len(self.prefix)
        if names[:depth] != self.prefix:
            return False
        if self.is_plain or self.is_subtree:
            return True
        return names_match((*self.rest, DEPTH) if self.open_end else self.rest, names[depth:])


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern. Two spellings of the same alternatives are equal."""

    text: str = field(compare=False)
    """As it was written."""
    alternatives: tuple[Alternative, ...] = field(compare=False)
    fold_case: bool
    _canonical: frozenset[Alternative] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_canonical", frozenset(self.alternatives))

    def __str__(self) -> str:
        return self.text

    def matches(self, path: str) -> bool:
        """Whether the pattern matches this path. It never matches one outside the workspace."""
        names = path_names(path, fold_case=self.fold_case)
        return bool(names) and any(each.matches(names) for each in self.alternatives)


def parse(text: str, *, fold_case: bool = False) -> Pattern:
    """Parse a pattern.

    Raises InvalidPattern with the position where it is malformed, or ClaimOutsideWorkspace.
    """
    if not isinstance(text, str):
        raise InvalidPattern(repr(text), 0, f"a pattern is text, not {type(text).__name__}")
    if len(text) > _LONGEST:
        raise InvalidPattern(text[:80] + "...", _LONGEST, "it is longer than any path")
    return _parse(text, fold_case)


@lru_cache(maxsize=1 << 16)
def _parse(text: str, fold_case: bool) -> Pattern:
    found = dict.fromkeys(
        _alternative(text, each) for each in normal_segments(text, fold_case=fold_case)
    )
    return Pattern(text, tuple(found), fold_case)


def _alternative(text: str, segments: list[Segment]) -> Alternative:
    if len(segments) > _DEEPEST:
        raise InvalidPattern(text, 0, f"it is more than {_DEEPEST} folders deep")
    prefix = tuple(itertools.takewhile(lambda each: isinstance(each, str), segments))
    return Alternative(cast("tuple[str, ...]", prefix), tuple(segments[len(prefix) :]))


def path_names(path: str, *, fold_case: bool = False) -> tuple[str, ...]:
    """Return the names of a path in normal form; none if it is not inside the workspace."""
    if path.startswith("/") or "\0" in path:
        return ()
    names: list[str] = []
    for name in normal_text(path, fold_case=fold_case).split("/"):
        if name == "..":
            if not names:
                return ()
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return tuple(names)

"""The overlap test is exact: compared here with brute force over enumerated paths.

Why absence in the enumeration means absence altogether:

* Characters. The patterns mention only `a`, `b` and `.`, so every other character is treated
  like `c` by each of them. Four characters are enough.
* Names. Let two segments have p and q pieces that take exactly one character. In a shortest
  common name each character is taken by one of these p + q pieces: one that two `*` take could
  be left out, unless that leaves the empty name, `.` or `..`. So its length is at most
  max(p + q, 3). Segments here have at most 3 such pieces: names up to 6 characters are enough.
* One name for all alike. A pattern sees of a name only which of its segments match it. So one
  name for each set of segments of the vocabulary that a name can match stands for all of them.
* Depth. In a shortest common path each name is taken by a segment other than `**`, one of m in
  one pattern or of n in the other; and m names are exactly what a pattern without `**` matches.
  Patterns here have at most 2 such segments if they hold a `**` (a slash at the end counts as
  one), else at most 4: paths up to 4 names are enough.
* Folders. The folders that a pattern spells out are the paths of its beginnings, and these keep
  to the same bounds.

The brute force knows of each pattern three sets of paths: what its segments match as they stand,
the part of it that is open-ended, and the folders it spells out on the way to something. It
finds them with `re`, by expressions written down together with the patterns, and shares nothing
with the code under test.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from interlock.model.patterns.overlap import overlap
from interlock.model.patterns.pattern import parse

ALPHABET = "ab.c"
NAMES = [
    name
    for length in range(1, 7)
    for name in map("".join, itertools.product(ALPHABET, repeat=length))
    if name not in (".", "..")
]
ANY_DEPTH = "(?:[^/]+/)*"
"""Matched against paths with a slash after each name."""
NOTHING = "(?!)"


@dataclass(frozen=True)
class Word:
    """A segment as it is written, and each of its alternatives as a regular expression."""

    text: str
    options: tuple[str, ...]
    plain: tuple[bool, ...]


@dataclass(frozen=True)
class Sample:
    """A whole pattern as it is written, and what it means, as regular expressions."""

    text: str
    exact: re.Pattern[str]
    """What the segments match as they stand."""
    open_ended: re.Pattern[str]
    """The same, of the alternatives that end in a plain name."""
    folders: re.Pattern[str]
    """The folders spelled out by the alternatives that match anything."""
    meant: re.Pattern[str]
    """What `matches` is to match: whatever is below an open end as well."""


@dataclass(frozen=True)
class Paths:
    """What a pattern means of the enumerated paths, as the bits of numbers."""

    exact: int
    open_ended: int
    folders: int

    def overlap(self, other: Paths) -> bool:
        """The definition under test."""
        return bool(
            self.exact & other.exact
            or self.open_ended & other.folders
            or other.open_ended & self.folders
        )


PIECES = {
    "a": "a",
    "b": "b",
    ".": r"\.",
    "?": "[^/]",
    "[ab]": "[ab]",
    "[a.]": "[a.]",
    "[.]": r"\.",
    "[!a]": "[^a/]",
    "[^b.]": "[^b./]",
    "[!.]": "[^./]",
    "[a-b]": "[ab]",
    r"\a": "a",
}
STAR = "[^/]*"
NO_NAME = Word("[.]", (r"\.",), (False,))
"""What it spells is no name, so a pattern that has to pass it matches nothing."""


def some_pieces(rng: random.Random) -> tuple[str, str, bool]:
    """Up to three pieces and up to two stars: text, expression, and whether it is plain."""
    chosen = rng.choices(list(PIECES), k=rng.randint(0, 3))
    parts = [(piece, PIECES[piece]) for piece in chosen]
    plain = rng.random() < 0.4
    if plain:
        parts = [
            (piece, PIECES[piece]) for piece in rng.choices(["a", "b", "."], k=rng.randint(1, 2))
        ]
    for _ in range(0 if plain else rng.choice([0, 0, 1, 1, 2]) or not parts):
        parts.insert(rng.randint(0, len(parts)), ("*", STAR))
    text = "".join(piece for piece, _ in parts)
    if text in (".", "..", "**"):
        return "a", "a", True
    return text, "".join(expression for _, expression in parts), is_plain(text)


def is_plain(text: str) -> bool:
    return not set(text) & set("*?[")


def some_word(rng: random.Random) -> Word:
    spelled = [some_pieces(rng) for _ in range(rng.choice([1, 1, 1, 1, 2, 3]))]
    texts, options, plain = zip(*spelled, strict=True)
    text = texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}"
    return Word(text, options, plain)


def some_sample(rng: random.Random, words: Sequence[Word]) -> Sample:
    """A pattern of words and `**`, now and then with braces round whole runs of segments."""
    runs = [some_run(rng, words) for _ in range(rng.choice([1, 1, 1, 1, 1, 2, 3]))]
    # A folder counts as if `**` followed, so it may not be longer than patterns with `**` are.
    short = all(sum(word is not None for word in run) <= 2 for run in runs)
    trailing = rng.choice(["", "", "", "", "/", "/**"]) if short else ""
    texts = ["/".join(word.text if word else "**" for word in run) for run in runs]
    text = texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}"
    if rng.random() < 0.1:
        text = "./" + text.replace("/", "//")
    ways = [way for run in runs for way in ways_through(run, subtree=trailing != "")]
    exact = ["".join(way.steps) for way in ways]
    open_ended = [each for each, way in zip(exact, ways, strict=True) if way.plain[-1]]
    return Sample(
        text + trailing,
        any_of(exact),
        any_of(open_ended),
        any_of(folder for way in ways for folder in way.folders()),
        any_of([*exact, *(each + ANY_DEPTH for each in open_ended)]),
    )


def some_run(rng: random.Random, words: Sequence[Word]) -> list[Word | None]:
    if rng.random() < 0.35:
        return [*rng.choices(words, k=rng.randint(1, 4))]  # no `**` at all
    run: list[Word | None] = [*rng.choices(words, k=rng.choice([0, 1, 2, 2, 2]))]
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2]) or not run):
        run.insert(rng.randint(0, len(run)), None)
    return run


@dataclass(frozen=True)
class Way:
    """One way through the braces: an expression for each segment, and whether it is plain."""

    steps: tuple[str, ...]
    plain: tuple[bool, ...]

    def folders(self) -> Iterator[str]:
        if all(step == ANY_DEPTH or takes_a_name(step) for step in self.steps):
            for end in range(1, len(self.steps)):
                if self.plain[end - 1]:
                    yield "".join(self.steps[:end])


def ways_through(run: Sequence[Word | None], *, subtree: bool) -> Iterator[Way]:
    depth = [(ANY_DEPTH, False)]
    choices = [
        depth
        if word is None
        else [
            (f"(?:{option})/", plain)
            for option, plain in zip(word.options, word.plain, strict=True)
        ]
        for word in run
    ]
    for chosen in itertools.product(*choices, *([depth] if subtree else [])):
        steps, plain = zip(*chosen, strict=True)
        yield Way(steps, plain)


@functools.cache
def takes_a_name(step: str) -> bool:
    regex = re.compile(step)
    return any(regex.fullmatch(name + "/") for name in NAMES)


def any_of(expressions: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(expressions) or NOTHING)


def names_that_differ(words: Sequence[Word]) -> list[str]:
    """One name for each set of segments that a name can match."""
    compiled = [re.compile(option) for word in words for option in word.options]
    kinds: dict[tuple[bool, ...], str] = {}
    for name in NAMES:
        kinds.setdefault(tuple(each.fullmatch(name) is not None for each in compiled), name)
    return list(kinds.values())


def bits(regex: re.Pattern[str], paths: Sequence[str]) -> int:
    if regex.pattern == NOTHING:
        return 0
    fullmatch = regex.fullmatch
    return sum(1 << index for index, path in enumerate(paths) if fullmatch(path))


@pytest.mark.parametrize("seed", range(16))
def test_overlap_is_exact_for_random_patterns(seed: int) -> None:
    rng = random.Random(seed)
    words = [some_word(rng) for _ in range(6)]
    if seed % 4 == 0:
        words[0] = NO_NAME
    names = names_that_differ(words)
    while len(names) > 9:  # keeps the number of paths, names ** 4, small
        words.pop()
        names = names_that_differ(words)
    paths = [
        "/".join(path) + "/"
        for depth in range(1, 5)
        for path in itertools.product(names, repeat=depth)
    ]
    samples = {each.text: each for each in (some_sample(rng, words) for _ in range(90))}
    patterns = [(parse(sample.text), sample) for sample in samples.values()]
    means: list[Paths] = []
    for pattern, sample in patterns:
        for path in rng.sample(paths, min(60, len(paths))):
            expected = sample.meant.fullmatch(path) is not None
            assert pattern.matches(path[:-1]) == expected, (sample.text, path)
        means.append(
            Paths(
                bits(sample.exact, paths),
                bits(sample.open_ended, paths),
                bits(sample.folders, paths),
            )
        )
    pairs = list(itertools.combinations_with_replacement(range(len(patterns)), 2))
    assert len(pairs) >= 2_000, "sixteen seeds are to make more than 20,000 pairs, with room"
    for i, j in pairs:
        (a, one), (b, other) = patterns[i], patterns[j]
        for witness in (overlap(a, b), overlap(b, a)):
            found = (one.text, other.text, witness)
            assert (witness is not None) == means[i].overlap(means[j]), found
            if witness is not None:
                assert not {"", ".", ".."} & set(witness.split("/")), found
                assert one.meant.fullmatch(witness + "/"), found
                assert other.meant.fullmatch(witness + "/"), found


def test_overlap_is_exact_for_every_pair_of_short_segments() -> None:
    pieces = {"a": "a", ".": r"\.", "*": STAR, "?": "[^/]", "[a.]": "[a.]", "[!a]": "[^a]"}
    names = [name for name in NAMES if "b" not in name]  # `b` is like `c` to all of these
    matched: dict[str, int] = {}
    for length in (1, 2, 3):
        for chosen in itertools.product(pieces, repeat=length):
            text = "".join(chosen)
            if text in (".", "..", "**"):
                continue  # no names: a folder, the folder above, any folder
            regex = re.compile("".join(pieces[piece] for piece in chosen))
            matched[text] = sum(1 << i for i, name in enumerate(names) if regex.fullmatch(name))
    assert len(matched) > 200
    for (one, some), (other, others) in itertools.combinations(matched.items(), 2):
        assert (overlap(parse(one), parse(other)) is not None) == bool(some & others), (one, other)

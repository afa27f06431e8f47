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
  one pattern or of n in the other; and m names are exactly what a pattern without `**` matches
  (a plain last segment counts as if `**` followed). Patterns here have at most 2 such segments
  if they hold a `**`, else at most 4: paths up to 4 names are enough.

The brute force matches whole paths with `re`, by expressions written down together with the
patterns, and shares nothing with the code under test.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.overlap import alternatives_overlap, overlap
from interlock.model.pattern import Pattern, parse

ALPHABET = "ab.c"
NAMES = [
    name
    for length in range(1, 7)
    for name in map("".join, itertools.product(ALPHABET, repeat=length))
    if name not in (".", "..")
]
ANY_DEPTH = "(?:[^/]+/)*"
"""Matched against paths with a slash after each name."""


def common(a: str, b: str) -> str | None:
    """The witness, checked to be the same answer both ways and to be matched by both."""
    one, other = parse(a), parse(b)
    witness = overlap(one, other)
    assert (witness is None) == (overlap(other, one) is None), (a, b)
    if witness is not None:
        assert one.matches(witness), (a, b, witness)
        assert other.matches(witness), (a, b, witness)
    return witness


# --- brute force --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    """A segment as it is written, and each of its alternatives as a regular expression."""

    text: str
    options: tuple[str, ...]
    plain: tuple[bool, ...]


@dataclass(frozen=True)
class Sample:
    """A whole pattern as it is written, and what it means."""

    text: str
    regex: re.Pattern[str]


PIECES = {
    "a": "a",
    "b": "b",
    ".": r"\.",
    "?": "[^/]",
    "[ab]": "[ab]",
    "[a.]": "[a.]",
    "[!a]": "[^a/]",
    "[^b.]": "[^b./]",
    "[!.]": "[^./]",
    "[a-b]": "[ab]",
    r"\a": "a",
}
STAR = "[^/]*"


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
    meant = "|".join(
        expression for run in runs for expression in expressions(run, subtree=trailing != "")
    )
    return Sample(text + trailing, re.compile(meant))


def some_run(rng: random.Random, words: Sequence[Word]) -> list[Word | None]:
    if rng.random() < 0.35:
        # No `**` at all: the length is fixed, and the last segment has wildcards only.
        wild = [word for word in words if not any(word.plain)]
        if wild:
            return [*rng.choices(words, k=rng.randint(0, 3)), rng.choice(wild)]
    run: list[Word | None] = [*rng.choices(words, k=rng.choice([0, 1, 2, 2, 2]))]
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2]) or not run):
        run.insert(rng.randint(0, len(run)), None)
    return run


def expressions(run: Sequence[Word | None], *, subtree: bool) -> Iterable[str]:
    choices = [
        [(ANY_DEPTH, True)]
        if word is None
        else [
            (f"(?:{option})/", plain)
            for option, plain in zip(word.options, word.plain, strict=True)
        ]
        for word in run
    ]
    for way in itertools.product(*choices):
        below = ANY_DEPTH if subtree or way[-1][1] else ""
        yield "".join(expression for expression, _ in way) + below


def names_that_differ(words: Sequence[Word]) -> list[str]:
    """One name for each set of segments that a name can match."""
    compiled = [re.compile(option) for word in words for option in word.options]
    kinds: dict[tuple[bool, ...], str] = {}
    for name in NAMES:
        kinds.setdefault(tuple(each.fullmatch(name) is not None for each in compiled), name)
    return list(kinds.values())


def paths_matched(sample: Sample, paths: Sequence[str]) -> int:
    """The paths that the pattern means, as the bits of a number."""
    fullmatch = sample.regex.fullmatch
    return sum(1 << index for index, path in enumerate(paths) if fullmatch(path))


@pytest.mark.parametrize("seed", range(16))
def test_overlap_is_exact_for_random_patterns(seed: int) -> None:
    rng = random.Random(seed)
    words = [some_word(rng) for _ in range(6)]
    names = names_that_differ(words)
    while len(names) > 11:  # keeps the number of paths, names ** 4, small
        words.pop()
        names = names_that_differ(words)
    paths = [
        "/".join(path) + "/"
        for depth in range(1, 5)
        for path in itertools.product(names, repeat=depth)
    ]
    samples = list(
        {each.text: each for each in (some_sample(rng, words) for _ in range(90))}.values()
    )
    patterns = [parse(sample.text) for sample in samples]
    matched = [paths_matched(sample, paths) for sample in samples]
    for pattern, bits in zip(patterns, matched, strict=True):
        for index in rng.sample(range(len(paths)), min(60, len(paths))):
            assert pattern.matches(paths[index][:-1]) == bool(bits >> index & 1), (pattern, index)
    pairs = list(itertools.combinations_with_replacement(range(len(samples)), 2))
    assert len(pairs) >= 2_000, "sixteen seeds are to make more than 20,000 pairs, with room"
    for i, j in pairs:
        expected = matched[i] & matched[j]
        witness = common(samples[i].text, samples[j].text)
        assert (witness is not None) == bool(expected), (samples[i].text, samples[j].text, witness)
        if witness is not None:
            assert samples[i].regex.fullmatch(witness + "/"), (samples[i].text, witness)
            assert samples[j].regex.fullmatch(witness + "/"), (samples[j].text, witness)


def test_overlap_is_exact_for_every_pair_of_short_segments() -> None:
    pieces = {"a": "a", ".": r"\.", "*": STAR, "?": "[^/]", "[a.]": "[a.]", "[!a]": "[^a]"}
    names = [name for name in NAMES if "b" not in name]  # `b` is like `c` to all of these
    matched: dict[str, int] = {}
    for length in (1, 2, 3):
        for chosen in itertools.product(pieces, repeat=length):
            text = "".join(chosen)
            if is_plain(text) or text == "**":
                continue  # `.` is no segment, and the others would stand for subtrees
            regex = re.compile("".join(pieces[piece] for piece in chosen))
            matched[text] = sum(1 << i for i, name in enumerate(names) if regex.fullmatch(name))
    assert len(matched) > 200
    for (one, some), (other, others) in itertools.combinations(matched.items(), 2):
        assert (overlap(parse(one), parse(other)) is not None) == bool(some & others), (one, other)


# --- examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["src/a.ts", "src/**/*.ts", "src/", "./src//a.ts", "src", "**"])
def test_a_subtree_overlaps_whatever_lies_in_it(other: str) -> None:
    assert common("src/**", other)


@pytest.mark.parametrize(
    ("a", "b", "witness"),
    [
        ("src/**", "src/a.ts", "src/a.ts"),
        ("src/**", "src/**/*.ts", "src/x.ts"),
        ("**", "**", "x"),
        ("docs/*.md", "docs/[!a]*", "docs/x.md"),
        ("packages/*/src", "packages/a/src/x.py", "packages/a/src/x.py"),
        ("a/**/z", "a/b/**", "a/b/z"),
        ("{a,b/c}/d", "b/*/d", "b/c/d"),
        ("*.test.*", "**/x.*", "x.test."),
        (".*", "?[!a-z]*", ".0"),
    ],
)
def test_the_witness_is_short_and_readable(a: str, b: str, witness: str) -> None:
    assert common(a, b) == witness


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src/*.py", "src/a/b.py"),
        ("src", "src2"),
        ("src/", "lib/"),
        ("*.py", "*.pyc"),
        ("src/*", "src/a/b"),
        ("src/*/x*", "src/x?"),
        ("**/a*", "**/b*"),
        ("{a,b}/x", "c/x"),
        ("a/?", "a/bb"),
        ("[a-m]*", "[n-z]*"),
        ("[!a]", "a"),
        ("a/**/b/*.py", "a/**/c/*.py"),
    ],
)
def test_patterns_without_a_common_path_do_not_overlap(a: str, b: str) -> None:
    assert common(a, b) is None


@pytest.mark.parametrize(
    ("a", "b", "witness"),
    [
        ("?", "[.]", None),
        ("??", "[.][.]", None),
        ("???", "[.][.][.]", "..."),
        ("[.]*", "?", None),
        ("[.]*", "*[.]", ".x."),
        ("[.]*", "**", ".x"),
        ("**/[.]", "**", None),
        ("[.]/x", "?/x", None),
    ],
)
def test_the_dots_that_mean_folders_are_not_names(a: str, b: str, witness: str | None) -> None:
    assert common(a, b) == witness


def test_plain_names_might_be_folders_that_hold_each_other() -> None:
    assert common("**/a", "**/b") == "a/b"
    assert common("src/*/x", "src/x") == "src/x/x"


def test_a_class_never_takes_a_slash() -> None:
    assert common("a[/]b", "**") is None
    assert common("a[!x]b", "a/b") is None
    assert common("a[+-9]b", "a?b")


def test_folded_patterns_overlap_in_any_case() -> None:
    def folded(a: str, b: str) -> str | None:
        return overlap(parse(a, fold_case=True), parse(b, fold_case=True))

    assert common("SRC/A.py", "src/a.py") is None
    assert folded("SRC/A.py", "src/a.py") == "src/a.py"
    assert folded("STRASSE/*", "straße/x") == "strasse/x"
    assert folded("[A-C]x", "bX") == "bx"
    assert folded("[!a]x", "AX") is None
    assert folded("[!A]x", "aX") is None
    assert folded("[A-Z]", "[!a-z]") is None


def test_many_stars_and_many_depths_stay_cheap() -> None:
    # With backtracking each of these would take longer than the age of the universe.
    assert common("a*" * 40 + "b", "a*" * 40 + "c") is None
    assert common("*a" * 40 + "*", "*b" * 40 + "*")
    assert common("a*a*a*a*a*a*a*a*b", "a*a*a*a*a*a*a*a*b")
    assert common("a*a*a*a*a*a*a*a*b", "a*a*a*a*a*a*a*ac") is None
    assert common("**/a/" * 30 + "b*", "**/a/" * 30 + "c*") is None
    assert common("**/a/" * 30 + "x", "**/b/" * 30 + "x")
    assert common("**/" * 30 + "*.py", "**/" * 30 + "*.ts") is None
    assert not parse("*a" * 40 + "*b").matches("a" * 250)
    assert not parse("**/a/" * 40 + "b*").matches("/".join("a" * 250))


def test_the_kernel_may_ask_for_single_alternatives() -> None:
    (one,) = parse("src/**/*.py").alternatives
    (other,) = parse("src/api").alternatives
    assert alternatives_overlap(one, other) == "src/api/x.py"
    assert alternatives_overlap(other, one) == "src/api/x.py"


# --- laws ---------------------------------------------------------------------------------------


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    pieces = st.sampled_from(["a", "b", "é", "*", "?", "[ab]", "[!a]", "{a,b*}", "{a/b,b}", "."])
    segment = st.one_of(st.just("**"), st.lists(pieces, min_size=1, max_size=4).map("".join))
    segments = draw(st.lists(segment, min_size=1, max_size=5))
    return parse("/".join(segment.replace("..", "b") for segment in segments))


@given(patterns(), patterns())
def test_a_witness_is_matched_by_both_and_the_order_does_not_matter(a: Pattern, b: Pattern) -> None:
    witness = overlap(a, b)
    assert (witness is None) == (overlap(b, a) is None)
    assert witness is None or (a.matches(witness) and b.matches(witness))


@given(patterns(), patterns(), patterns())
def test_braces_overlap_where_one_of_their_alternatives_does(
    a: Pattern, b: Pattern, c: Pattern
) -> None:
    either = parse("{" + a.text + "," + b.text + "}")
    expected = overlap(a, c) is not None or overlap(b, c) is not None
    assert (overlap(either, c) is not None) == expected


@given(patterns())
def test_a_pattern_overlaps_the_workspace_where_it_matches_anything(a: Pattern) -> None:
    assert (overlap(a, parse("**")) is None) == (overlap(a, a) is None)

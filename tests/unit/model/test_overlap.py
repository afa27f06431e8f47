"""The overlap test by example and by law; `test_overlap_exact.py` compares it with brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.patterns.overlap import alternatives_overlap, overlap
from interlock.model.patterns.pattern import Alternative, Pattern, parse
from interlock.model.patterns.segment import DEPTH


def common(a: str, b: str) -> str | None:
    """The witness, checked to be the same answer both ways and to be matched by both."""
    one, other = parse(a), parse(b)
    witness = overlap(one, other)
    assert (witness is None) == (overlap(other, one) is None), (a, b)
    if witness is not None:
        assert one.matches(witness), (a, b, witness)
        assert other.matches(witness), (a, b, witness)
    return witness


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
        ("packages/*/src", "**/src/*.py", "packages/x/src/x.py"),
        ("src", "src/**/*.ts", "src/x.ts"),
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


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("src", "src"),
        ("src", "src/a.ts"),
        ("src", "src/"),
        ("src", "src/**"),
        ("src", "src/*.ts"),
        ("src", "src/**/*.ts"),
        ("src", "src/a/*/b/*"),
        ("src", "**/src/*.ts"),
        ("src/a", "**/a/**/b*"),
        ("packages/*/src", "packages/a/src/x.py"),
        ("packages/*/src", "packages/a/src/*.py"),
        ("packages/*/src", "**/src/x.py"),
        ("**/a", "**/a/b"),
        ("**/a", "b/a/a*"),
        ("{x,src}", "{y,src/*}"),
    ],
)
def test_a_plain_last_name_is_a_folder_where_the_other_goes_on_below_it(
    plain: str, other: str
) -> None:
    assert common(plain, other)


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("src/a.py", "**/*.md"),
        ("**/README.md", "**/*.py"),
        ("**/a", "**/b"),
        ("src/x", "src/*/x"),
        ("src/a", "src/*/b*"),
        ("src/a", "src/**/b*"),
        ("src", "*/a.ts"),
        ("**/a", "*/b/**/c"),
        ("{x,src}/a", "{y,src}/*/b"),
    ],
)
def test_wildcards_make_no_folder_of_a_plain_last_name(plain: str, other: str) -> None:
    assert common(plain, other) is None


def test_with_a_slash_wildcards_lead_into_the_folder() -> None:
    assert common("src/a.py/", "**/*.md") == "src/a.py/x.md"
    assert common("src/a/", "src/*/b*") == "src/a/b"
    assert common("**/a/", "**/b") == "a/b"
    assert common("**/a/", "**/b/")


def test_a_last_name_with_wildcards_is_never_a_folder() -> None:
    assert common("sr*", "src/a") is None
    assert common("s?c", "src/**/x") is None
    assert common("src/*", "src/a/") == "src/a"


def test_what_goes_on_to_no_name_at_all_overlaps_nothing() -> None:
    assert common("src", "src/[.]") is None
    assert common("src/", "src/[.]") is None
    assert common("**/src", "src/*/[.]") is None
    assert common("**/src", "*/src/[.]") is None


def test_a_class_never_takes_a_slash() -> None:
    assert common("a[/]b", "**") is None
    assert common("a[!x]b", "a/b") is None
    assert common("a[+-9]b", "a?b")


def test_folded_patterns_overlap_in_any_case() -> None:
    def folded(a: str, b: str) -> str | None:
        return overlap(parse(a, fold_case=True), parse(b, fold_case=True))

    assert common("SRC/A.py", "src/a.py") is None
    assert folded("SRC/A.py", "src/a.py") == "src/a.py"
    # One character stands for one, as file systems have it.
    assert folded("STRASSE/*", "straße/x") is None
    assert folded("STRA?E/*", "straße/x") == "straße/x"
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
    assert common("**/a/" * 30 + "**/x", "**/b/" * 30 + "**/x")
    assert common("**/a/" * 30 + "a", "**/b/" * 30 + "c") is None
    assert common("**/a/" * 30 + "a", "**/a/" * 60 + "c*")
    assert common("**/" * 30 + "*.py", "**/" * 30 + "*.ts") is None
    assert not parse("*a" * 40 + "*b").matches("a" * 250)
    assert not parse("**/a/" * 40 + "b*").matches("/".join("a" * 250))


def test_the_kernel_may_ask_for_single_alternatives() -> None:
    (one,) = parse("src/**/*.py").alternatives
    plain, folder = Alternative(("src", "api"), ()), Alternative(("src", "api"), (DEPTH,))
    assert alternatives_overlap(one, folder) == "src/api/x.py"
    assert alternatives_overlap(folder, one) == "src/api/x.py"
    assert alternatives_overlap(one, plain) is None
    assert alternatives_overlap(plain, folder) == "src/api"
    assert alternatives_overlap(Alternative((), (DEPTH,)), plain) == "src/api"


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


@given(patterns(), patterns())
def test_a_slash_at_the_end_only_adds_overlaps(a: Pattern, b: Pattern) -> None:
    if overlap(a, b) is not None:
        assert overlap(parse(a.text + "/"), b) is not None
        assert overlap(parse(a.text + "/"), parse(b.text + "/")) is not None


@given(patterns(), st.lists(st.sampled_from(["a", "b", "ab", "é", "."]), min_size=1, max_size=5))
def test_a_pattern_overlaps_each_path_that_it_matches(pattern: Pattern, names: list[str]) -> None:
    path = "/".join(["a", *names])
    if pattern.matches(path):
        assert overlap(pattern, parse(path)) is not None
        assert overlap(pattern, parse(path + "/")) is not None


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

"""Reading, normalising and matching path patterns."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import ClaimOutsideWorkspace, InvalidPattern
from interlock.model.patterns.pattern import Alternative, parse
from interlock.model.patterns.segment import DEPTH


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("src", ["src", "src/a", "src/a/b"], ["src2", "a/src", "sr"]),
        ("src/", ["src", "src/a", "src/a/b"], ["src2"]),
        ("src/**", ["src", "src/a", "src/a/b"], ["src2"]),
        ("src/*", ["src/a", "src/.a"], ["src", "src/a/b"]),
        ("src/*/", ["src/a", "src/a/b"], ["src"]),
        ("src/*.py", ["src/a.py", "src/.py"], ["src/a/b.py", "src/a.pyc", "a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["src", "lib/a.py"]),
        ("**/x", ["x", "a/x", "a/b/x", "x/y"], ["ax", "a"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "axb", "a**b"], ["a/b", "a/x/b"]),
        ("a?c", ["abc", "a.c"], ["ac", "abbc", "a/c"]),
        ("[abc]x", ["ax", "cx"], ["dx", "x"]),
        ("[a-c]x", ["ax", "bx"], ["dx"]),
        ("[!a-c]x", ["dx", ".x"], ["ax", "bx", "x"]),
        ("[^a]x", ["^x", "bx"], ["ax"]),
        ("[]]", ["]"], ["["]),
        ("[!]]", ["["], ["]"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[-a]", ["a", "-"], ["b"]),
        (r"[\]\-x]", ["]", "-", "x"], ["\\"]),
        ("[{,}]", ["{", ",", "}"], ["a"]),
        ("[+-9]", ["+", "0"], ["/"]),
        ("{a,b/c}/d", ["a/d", "b/c/d"], ["a/c/d", "b/d"]),
        ("x{,.py}", ["x", "x.py", "x/y"], ["x.", "x.pyc"]),
        ("x{a,{b,c}d}", ["xa", "xbd", "xcd"], ["xb", "xad"]),
        ("{[,],b}", [",", "b"], ["a"]),
        ("a,b", ["a,b"], ["a", "b"]),
        (r"\*", ["*", "*/x"], ["a"]),
        (r"a\{b", ["a{b"], ["ab"]),
        ("packages/*/src", ["packages/a/src", "packages/a/src/x.py"], ["packages/src"]),
        ("~/x", ["~/x"], ["x"]),
        (".github", [".github/x"], ["github"]),
        ("...", ["..."], ["x"]),
        ("a b", ["a b"], ["a"]),
    ],
)
def test_a_pattern_matches_what_its_signs_say(
    pattern: str, matched: list[str], not_matched: list[str]
) -> None:
    parsed = parse(pattern)
    assert [path for path in matched if not parsed.matches(path)] == []
    assert [path for path in not_matched if parsed.matches(path)] == []


@pytest.mark.parametrize("path", ["", ".", "/src", "../src", "src/../..", "src/\0", "a/../../src"])
def test_what_is_no_path_of_the_workspace_is_never_matched(path: str) -> None:
    assert not parse("**").matches(path)


def test_a_path_is_matched_however_it_is_spelled() -> None:
    assert parse("src/a.ts").matches("./src//x/../a.ts")
    assert parse("caf\u00e9").matches("cafe\u0301")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/", "src/**"),
        ("src/", "./src//."),
        ("src/", "src/**/**"),
        ("src/", "src/x/.."),
        ("src/a.ts", "./src//a.ts"),
        ("y", "x/../y"),
        (".", "**"),
        (".", "./"),
        (".", "x/.."),
        ("**/x", "**/**/x"),
        ("**/x/", "**/x/**"),
        ("a*b", "a**b"),
        ("*", "***"),
        ("*/", "*/x/.."),
        ("{a,b}", "{b,a}"),
        ("{a,a}", "a"),
        ("x/{a,}/b", "x/{a/,}b"),
        ("[!a]", "[^a]"),
        ("[ab]", "[a-b]"),
        (r"\a", "a"),
        ("caf\u00e9", "cafe\u0301"),
        ("caf\u00e9", "caf{e}\u0301"),
        ("caf\u00e9*", "caf{e}\u0301*"),
    ],
)
def test_two_spellings_are_one_pattern(one: str, other: str) -> None:
    assert parse(one) == parse(other)
    assert hash(parse(one)) == hash(parse(other))


@pytest.mark.parametrize("text", ["src", "src/a.py", "**/src", "packages/*/src", "{a,b}"])
def test_with_a_slash_at_the_end_it_is_another_pattern(text: str) -> None:
    assert parse(text) != parse(text + "/")
    (plain, *_), (folder, *_) = parse(text).alternatives, parse(text + "/").alternatives
    assert (plain.open_end, folder.open_end) == (True, False)
    assert plain != folder


def test_a_pattern_remembers_how_it_was_written() -> None:
    assert parse("./src//").text == "./src//"
    assert str(parse("./src//")) == "./src//"


def test_leading_plain_names_are_the_prefix() -> None:
    (alternative,) = parse("src/api/**/*.py").alternatives
    assert alternative.prefix == ("src", "api")
    assert alternative.rest[0] is DEPTH
    assert len(alternative.rest) == 2
    assert not alternative.is_plain
    assert not alternative.is_subtree
    assert not alternative.open_end


@pytest.mark.parametrize(
    ("text", "prefix"),
    [("src/", ("src",)), ("src/api/**", ("src", "api")), (".", ()), ("**", ())],
)
def test_a_folder_is_a_subtree(text: str, prefix: tuple[str, ...]) -> None:
    (alternative,) = parse(text).alternatives
    assert (alternative.prefix, alternative.rest) == (prefix, (DEPTH,))
    assert alternative.is_subtree
    assert not alternative.is_plain
    assert not alternative.open_end


def test_a_plain_path_is_open_ended() -> None:
    (alternative,) = parse("src/api").alternatives
    assert (alternative.prefix, alternative.rest) == (("src", "api"), ())
    assert alternative.is_plain
    assert alternative.open_end
    assert not alternative.is_subtree


def test_a_path_of_no_names_is_the_workspace() -> None:
    assert (Alternative((), ()),) == parse("**").alternatives


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "blank"),
        ("  \t", 0, "blank"),
        ("a\0b", 1, "NUL"),
        ("a\\\0", 2, "NUL"),
        ("src/[ab", 4, "never closed"),
        ("src/[]", 4, "never closed"),
        ("[!]", 0, "never closed"),
        ("a[b\\", 3, "backslash"),
        ("src/{a,b", 4, "never closed"),
        ("{a,{b}", 0, "never closed"),
        ("a}b", 1, "without a '{'"),
        ("{a}}", 3, "without a '{'"),
        ("abc\\", 3, "backslash"),
        ("x[c-a]", 2, "wrong way round"),
        ("src/*/../a", 6, "'..' after"),
        ("**/..", 3, "'..' after"),
        ("{,a}", 0, "blank"),
        ("{a,b}" * 9, 40, "more than 256"),
        ("e\u0301[", 2, "never closed"),
    ],
)
def test_a_malformed_pattern_is_refused_with_the_position(
    text: str, position: int, problem: str
) -> None:
    with pytest.raises(InvalidPattern, match=f"position {position}: ") as caught:
        parse(text)
    assert caught.value.position == position
    assert caught.value.pattern == text
    assert problem in str(caught.value)


def test_a_pattern_is_text() -> None:
    with pytest.raises(InvalidPattern, match="not list"):
        parse(["src"])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["../x", "a/../../x", "..", "{a,..}/x", "./../x", r"\.\./x"])
def test_a_pattern_that_climbs_out_of_the_workspace_is_refused(text: str) -> None:
    with pytest.raises(ClaimOutsideWorkspace, match="is outside the workspace; claim"):
        parse(text)


@pytest.mark.parametrize("text", ["/etc/passwd", "/", "//x", "{/a,b}", "{a,}/b"])
def test_an_absolute_pattern_is_refused(text: str) -> None:
    with pytest.raises(ClaimOutsideWorkspace, match="absolute path; write it"):
        parse(text)


def test_deep_nesting_and_long_text_are_read_without_recursion() -> None:
    assert parse("{" * 2000 + "a" + "}" * 2000) == parse("a")
    assert parse("a/" * 127).matches("a/" * 127 + "b")


def test_what_is_longer_or_deeper_than_any_path_is_refused() -> None:
    with pytest.raises(InvalidPattern, match="longer than any path"):
        parse("a" * 4097)
    with pytest.raises(InvalidPattern, match="128 folders deep"):
        parse("a/" * 129)


def test_256_alternatives_are_the_limit() -> None:
    assert len(parse("{a,b}" * 8).alternatives) == 256


def test_without_case_two_spellings_are_one_file() -> None:
    assert parse("SRC/A.py", fold_case=True) == parse("src/a.PY", fold_case=True)
    assert parse("SRC/A.py") != parse("src/a.PY")
    assert parse("src/*.PY", fold_case=True).matches("Src/X.py")
    assert parse("[A-C]", fold_case=True).matches("b")
    assert parse("[a-c]", fold_case=True).matches("B")
    assert not parse("[!a-c]", fold_case=True).matches("B")
    assert parse("\u00c9*", fold_case=True).matches("e\u0301x")


def test_a_copy_equals_its_original() -> None:
    pattern = parse("src/{a,b*}/**/[!x].py")
    assert pickle.loads(pickle.dumps(pattern)) == pattern
    assert hash(pickle.loads(pickle.dumps(pattern))) == hash(pattern)
    assert copy.deepcopy(pattern) == pattern


@given(st.text(alphabet="aé\u0301./*?[]!^-{},\\\0", max_size=20), st.booleans())
def test_any_text_is_read_or_refused_as_a_mistake_of_use(text: str, fold_case: bool) -> None:
    position = 0
    try:
        assert parse(text, fold_case=fold_case).alternatives
    except InvalidPattern as error:
        position = error.position
    except ClaimOutsideWorkspace:
        pass
    assert 0 <= position <= max(len(text) - 1, 0)

"""Bytes of a stranger become text that harms nobody."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.execution.command_text import Cleaner

NASTY = [
    b"\x1b[31mred\x1b[0m",
    b"\x1b]0;title\x07",
    b"\x1b]52;c;cm0gLXJmIC8=\x1b\\",
    b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b[?1049h\x1b[2J\x1b[H",
    b"\x1bc\x1b(0\x1b7",
    b"\xc2\x9b31mred",
    b"\xc2\x9d0;title\xc2\x9c",
    b"\x1b",
    b"\x1b[",
    b"\x1b]0;never ends",
    b"\x1b]0;a new line\nends it",
    b"\r\n",
    b"\r",
    b"\n",
    b"\x00\x07\x08\x7f",
    b"\xff\xfe",
    b"\xf0\x9f\x98",
    "ünï ✓ 😀".encode(),
    b"plain text ",
]


def cleaned(*pieces: bytes) -> str:
    cleaner = Cleaner()
    return "".join(map(cleaner.take, pieces)) + cleaner.rest()


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07a", "a"),
        (b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\xc2\x9b31mred", "red"),
        (b"one\r\ntwo", "one\ntwo"),
        (b"10%\r20%\r", "10%\n20%\n"),
        (b"a\x00b\x08c\x7f", "abc"),
        (b"bad \xff byte", "bad � byte"),
        (b"\tindented\n", "\tindented\n"),
        ("ünï ✓ 😀".encode(), "ünï ✓ 😀"),
        (b"\x1b]0;a new line\nends it", "]0;a new line\nends it"),
    ],
)
def test_orders_to_the_terminal_are_left_out(printed: bytes, text: str) -> None:
    assert cleaned(printed) == text


@given(st.lists(st.sampled_from(NASTY), max_size=8), st.lists(st.integers(0, 200), max_size=8))
def test_where_the_output_is_cut_makes_no_difference(parts: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(parts)
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    cut_up = [whole[a:b] for a, b in pairwise(places)]
    text = cleaned(*cut_up)
    assert text == cleaned(whole)
    assert all(each in "\t\n" or (each >= " " and not "\x7f" <= each <= "\x9f") for each in text)


@given(st.binary(max_size=200))
def test_no_control_character_gets_through(printed: bytes) -> None:
    text = cleaned(printed)
    assert all(each in "\t\n" or (each >= " " and not "\x7f" <= each <= "\x9f") for each in text)


def test_a_sequence_that_never_ends_does_not_swallow_the_rest() -> None:
    text = cleaned(b"\x1b]0;", *[b"x" * 10_000] * 20, b"the end")
    assert text.endswith("the end")
    assert len(text) > 100_000

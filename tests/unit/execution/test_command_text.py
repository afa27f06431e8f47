"""Bytes of a stranger become text that harms nobody."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.execution.commands.plain_output import Cleaner

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


def seconds(pieces: list[bytes]) -> float:
    begun = time.process_time()
    cleaned(*pieces)
    return time.process_time() - begun


@pytest.mark.parametrize("cut", [1 << 16, 16])
@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize(
    "opener",
    [
        *(b"\x1b" + each for each in (b"]", b"P", b"^", b"_", b"X", b"[", b" ", b"")),
        *(b"\xc2" + each for each in (b"\x9d", b"\x90", b"\x9e", b"\x9f", b"\x98", b"\x9b")),
        b"\xc2\x9d0;x",
        b"\x1b[0 ",
        b"\r",
    ],
)
def test_to_clean_four_times_as_much_takes_about_four_times_as_long(
    opener: bytes, end: bytes, cut: int
) -> None:
    """Not sixteen times, as it does where all is looked through from every opener."""

    def printed(count: int) -> list[bytes]:
        whole = opener * count + end
        return [whole[at : at + cut] for at in range(0, len(whole), cut)]

    least = [min(seconds(printed(count)) for _ in range(3)) for count in (6_000, 24_000)]
    assert least[1] < 9 * least[0] + 0.02


@pytest.mark.parametrize("begin", [b"\x1b]0;", b"\xc2\x9d", b"\x1b[", b"\x1b"])
def test_what_is_kept_back_is_not_looked_through_for_every_byte(begin: bytes) -> None:
    whole = [begin, *[b"0"] * 40_000]
    least = [min(seconds(whole[:count]) for _ in range(3)) for count in (10_000, 40_000)]
    assert least[1] < 9 * least[0] + 0.02

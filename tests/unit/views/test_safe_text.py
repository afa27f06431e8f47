"""Text of agents is harmless in a terminal."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.views.terminal import safe_text
from tests.unit.views.runs import HOSTILE

PARTS = [
    *HOSTILE,
    "\x1b[",
    "\x1b]",
    "\x1bP",
    "\x9d",
    "\x9c",
    "\x1b\\",
    "日",
    "e\u0301",
    "👩\u200d👧",
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jtext", "text"),
        ("\x1b]0;a string without an end", "]0;a string without an end"),
        ("a\nb\r\nc\td", "a b c d"),
        ("\u202egpj.exe", "gpj.exe"),
        ("pay\u200bpal", "paypal"),
        ("half \ud83d", "half \ufffd"),
        ("👩\u200d👧 ❤\ufe0f 日本 e\u0301", "👩👧 ❤ 日本 e\u0301"),
        ("a\u200db 日\u200d", "ab 日"),
        ("z" + "\u0301" * 50, "z" + "\u0301" * 3),
    ],
)
def test_what_is_no_text_is_left_out(text: str, shown: str) -> None:
    assert safe_text.line(text) == shown


@given(st.text() | st.lists(st.sampled_from(PARTS)).map("".join))
def test_nothing_that_a_terminal_obeys_is_let_through(text: str) -> None:
    line = safe_text.line(text)
    for character in line:
        category = unicodedata.category(character)
        assert category == "Co" or category[0] != "C"
        assert category not in ("Zl", "Zp")
    assert safe_text.line(line) == line
    line.encode()  # whatever it was, it can be written


def test_no_line_is_endless() -> None:
    assert len(safe_text.line("日" * 10_000_000)) == safe_text.LIMIT
    assert len(safe_text.line("a" * 10_000_000)) == safe_text.LIMIT


def test_lines_stay_lines() -> None:
    assert safe_text.lines("a\x1b[1m\nb\r\nc") == ["a", "b", "c"]


@pytest.mark.parametrize("opener", ["\x9d", "\x90", "\x98", "\x9e", "\x9f", "\x9b", "\x1b]"])
def test_to_show_four_times_as_much_takes_about_four_times_as_long(opener: str) -> None:
    """Not sixteen times, as it does where all is looked through from every opener."""

    def seconds(count: int) -> float:
        text = opener * count
        begun = time.process_time()
        safe_text.lines(text)
        return time.process_time() - begun

    least = [min(seconds(count) for _ in range(3)) for count in (6_000, 24_000)]
    assert least[1] < 9 * least[0] + 0.02

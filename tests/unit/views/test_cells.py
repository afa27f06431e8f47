"""Text fits its place, and no character is cut in half."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from interlock.views.terminal import safe_text
from interlock.views.terminal.cells import ELLIPSIS, column, cut, fit, fit_name, spread

TEXTS = st.lists(
    st.sampled_from(
        ["a", "-", " ", "日", "e\u0301", "👩\u200d👩\u200d👧", "\u200d", "❤\ufe0f", "…"]
    )
).map("".join)
WIDTHS = st.integers(0, 40)


@given(TEXTS | st.text(), WIDTHS)
def test_text_is_never_wider_than_its_place(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) <= width
    assert cell_len(fit_name(text, width)) <= width
    assert cut(Text(safe_text.line(text)), width).cell_len <= width


@given(TEXTS | st.text(), WIDTHS)
def test_a_column_fills_its_place_exactly(text: str, width: int) -> None:
    assert cell_len(column(text, width)) == width


@given(TEXTS, WIDTHS)
def test_what_is_cut_is_cut_between_characters(text: str, width: int) -> None:
    whole = safe_text.line(text)
    fitted = fit(text, width)
    if fitted != whole and len(fitted) > 1:
        kept = fitted.removesuffix(ELLIPSIS)
        rest = whole.removeprefix(kept).lstrip(f" {ELLIPSIS}")
        assert whole.startswith(kept)
        assert not rest or not unicodedata.combining(rest[0])


def test_an_ellipsis_says_that_there_was_more() -> None:
    assert fit("documentation", 8) == "documen…"
    assert fit("日本語", 4) == "日…"
    assert fit("fits", 4) == "fits"


def test_a_long_name_keeps_its_end() -> None:
    assert fit_name("translate-the-handbook-chapter-17", 16) == "translate-…er-17"


def test_where_there_is_no_room_for_both_the_left_text_stays() -> None:
    assert spread(Text("left"), Text("right"), 12).plain == "left   right"
    assert spread(Text("left"), Text("right"), 10).plain == "left"

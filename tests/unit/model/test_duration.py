from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.errors import InvalidOption
from interlock.model.duration import Duration, seconds, span


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (0, 0.0),
        (90, 90.0),
        (1.5, 1.5),
        (timedelta(minutes=2), 120.0),
        ("90s", 90.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("250ms", 0.25),
        ("1.5h", 5400.0),
        ("2D", 172800.0),
    ],
)
def test_durations_are_read_as_people_write_them(written: Duration, expected: float) -> None:
    assert seconds(written) == pytest.approx(expected)


@pytest.mark.parametrize(
    "written",
    [-1, -0.5, timedelta(seconds=-1), float("inf"), float("nan")],
)
def test_a_negative_or_endless_duration_is_refused(written: Duration) -> None:
    with pytest.raises(InvalidOption, match=r"timeout is .* must be zero or more, and finite"):
        seconds(written, "timeout")


@pytest.mark.parametrize("written", ["", "90", "s", "1x", "1h-30m", "-5s", "1h,30m", "ten seconds"])
def test_text_that_is_no_duration_is_refused(written: str) -> None:
    with pytest.raises(InvalidOption, match=r"timeout is .* use a number with a unit"):
        seconds(written, "timeout")


@pytest.mark.parametrize("written", [None, True, [1], b"1s"])
def test_what_is_neither_number_nor_text_is_refused(written: object) -> None:
    with pytest.raises(InvalidOption, match="write seconds, a timedelta or text"):
        seconds(written)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (-1, "0 s"),
        (0.04, "0 s"),
        (0.3, "0.3 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (7500, "2 h 5 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_length_of_time_is_said_as_people_say_it(duration: float, said: str) -> None:
    assert span(duration) == said

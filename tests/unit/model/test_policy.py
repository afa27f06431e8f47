"""The numbers of the model that users rely on without writing them: each is pinned here."""

from __future__ import annotations

import pytest

from interlock.errors import InvalidOption
from interlock.model.error_pattern import checked_patterns
from interlock.model.limits import Breaker, Retry
from interlock.model.load import Auto, Load
from interlock.model.patterns.pattern import parse
from interlock.model.redaction import HIDDEN, Redaction, spellings
from interlock.model.template import LONGEST


def test_without_options_a_retry_makes_three_attempts_with_a_second_between_them() -> None:
    assert Retry() == Retry(attempts=3, backoff=1.0, max_backoff=60.0, jitter=0.25)


def test_without_options_a_breaker_opens_after_three_failures_for_half_a_minute() -> None:
    assert Breaker() == Breaker(failures=3, cool_down=30.0)


def test_without_options_slots_follow_a_load_of_eighty_percent() -> None:
    assert Auto() == Auto(least=1, most=16, cpu=80.0, memory=80.0)


@pytest.mark.parametrize(
    ("now", "in_use", "cpu", "memory", "then"),
    [
        (4, 4, 80.0, 80.0, 5),  # at the bound there is still room
        (4, 3, 10.0, 10.0, 4),  # one is free: no need for more
        (16, 16, 10.0, 10.0, 16),
        (4, 4, 80.1, 10.0, 3),  # one fewer than are in use
        (4, 4, 10.0, 80.1, 3),
        (8, 3, 90.0, 10.0, 2),
        (1, 1, 90.0, 10.0, 1),
    ],
)
def test_slots_are_added_one_by_one_and_fall_to_one_fewer_than_are_in_use(
    now: int, in_use: int, cpu: float, memory: float, then: int
) -> None:
    assert Auto().slots(now, in_use, Load(cpu, memory)) == then


def test_a_secret_has_four_characters_at_least() -> None:
    assert Redaction(["abcd"]).is_in("xabcdx")
    with pytest.raises(InvalidOption, match="4 or more"):
        Redaction(["abc"])


def test_a_line_of_a_secret_is_one_by_itself_from_sixteen_characters_on() -> None:
    long, short = "a" * 16, "b" * 15
    found = spellings(f"{long}\n{short}")
    assert long in found
    assert short not in found
    assert HIDDEN == "***"


def test_a_result_is_quoted_up_to_sixty_four_kibibytes() -> None:
    assert LONGEST == 64 * 1024


def test_what_is_repeated_up_to_eight_times_may_vary() -> None:
    assert checked_patterns("auth_error", r"(a|ab){1,8}c") == (r"(a|ab){1,8}c",)
    with pytest.raises(InvalidOption, match="may take for ever"):
        checked_patterns("auth_error", r"(a|ab){1,9}c")


def test_a_pattern_has_up_to_4096_characters() -> None:
    assert parse("a" * 4096).text == "a" * 4096

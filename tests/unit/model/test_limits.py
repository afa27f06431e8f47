from __future__ import annotations

import pytest

from interlock.errors import InvalidOption
from interlock.model.limits import Quota, Rate, Retry


def test_each_wait_is_twice_the_one_before_up_to_the_greatest() -> None:
    retry = Retry(attempts=5, backoff="1s", max_backoff="5s")
    assert [retry.wait(attempt, 0.0) for attempt in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 5.0]


def test_jitter_only_shortens_a_wait() -> None:
    retry = Retry(backoff=4, jitter=0.25)
    assert retry.wait(1, 0.0) == 4.0
    assert retry.wait(1, 1.0) == 3.0


def test_a_wait_after_very_many_attempts_is_still_a_number() -> None:
    assert Retry(attempts=10_000, max_backoff=60).wait(9_999, 0.0) == 60.0


@pytest.mark.parametrize("attempts", [0, -1, 1.5, True, "3", None])
def test_fewer_than_one_attempt_is_refused(attempts: object) -> None:
    with pytest.raises(InvalidOption, match=r"attempts is .* 1 or more"):
        Retry(attempts=attempts)  # type: ignore[arg-type]


def test_a_negative_wait_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"^backoff is -1"):
        Retry(backoff=-1)
    with pytest.raises(InvalidOption, match=r"^max_backoff is -1"):
        Retry(max_backoff=-1)


@pytest.mark.parametrize("jitter", [-0.1, 1.1, float("nan")])
def test_jitter_outside_its_range_is_refused(jitter: float) -> None:
    with pytest.raises(InvalidOption, match="jitter"):
        Retry(jitter=jitter)


@pytest.mark.parametrize(
    ("text", "amount", "window"),
    [
        ("60/min", 60, 60.0),
        ("100k/min", 100_000, 60.0),
        ("3/s", 3, 1.0),
        ("10/5s", 10, 5.0),
        ("1.5M/h", 1_500_000, 3600.0),
        (" 7/day ", 7, 86400.0),
    ],
)
def test_quotas_are_read_as_people_write_them(text: str, amount: int, window: float) -> None:
    assert Quota.parse(text) == Quota(amount, window)


@pytest.mark.parametrize("text", ["", "60", "60/", "/min", "60/year", "-1/s", "60 per min"])
def test_text_that_is_no_quota_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="is not a quota; write"):
        Quota.parse(text)


def test_a_quota_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(InvalidOption, match="lets nothing through"):
        Quota.parse("0/s")
    with pytest.raises(InvalidOption, match="window"):
        Quota.parse("1/0s")


@pytest.mark.parametrize("window", [0.0, -1.0, float("inf"), float("nan")])
def test_a_window_that_is_nothing_or_has_no_end_is_refused(window: float) -> None:
    with pytest.raises(InvalidOption, match="above 0 seconds, and finite"):
        Quota(1, window)


def test_a_rate_limits_requests_tokens_or_both() -> None:
    rate = Rate(requests="60/min", tokens=Quota(5, 1.0))
    assert rate.requests == Quota(60, 60.0)
    assert rate.tokens == Quota(5, 1.0)
    assert Rate(tokens="1k/s").requests is None
    with pytest.raises(InvalidOption, match="requests=, tokens= or both"):
        Rate()

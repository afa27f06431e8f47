"""What is read off answers and errors of strangers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest

from interlock.runtime.limits.llm_answers import retry_after, tokens_used


class Raised(Exception):
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def response(status: int = 429, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(status_code=status, headers=named)


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (Raised(retry_after=3), 3.0),
        (Raised(retry_after="2.5"), 2.5),
        (Raised(retry_after=timedelta(seconds=5)), 5.0),
        (Raised(retry_after=lambda: 3, headers={"Retry-After": "6"}), 6.0),
        (Raised(response=response(Retry_After="7")), 7.0),
        (Raised(response=response(retry_after="7", retry_after_ms="250")), 0.25),
        (Raised(headers={"RETRY-AFTER": "1"}), 1.0),
        (response(503, retry_after="4"), 4.0),
        (SimpleNamespace(status=429, headers={"Retry-After": "4"}), 4.0),
    ],
)
def test_a_retry_after_is_found_where_providers_put_it(answer: Any, wait: float) -> None:
    assert retry_after(answer) == wait


def test_a_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < retry_after(Raised(response=response(retry_after=date))) <= 100


class Broken:
    @property
    def usage(self) -> int:
        raise RuntimeError("lazy")


class Array:
    """Compares to an array, of which nobody can say whether it is true."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise ValueError("the truth is ambiguous")

    __hash__ = None  # type: ignore[assignment]


class Barred(dict[str, Any]):
    """Has nothing to say, loudly."""

    def get(self, *args: Any) -> Any:
        raise KeyError(*args)

    def items(self) -> Any:
        raise OSError("closed")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        Raised(),
        Raised(retry_after=-1),
        Raised(retry_after=float("nan")),
        Raised(retry_after=float("inf")),
        Raised(retry_after="soon"),
        Raised(retry_after=True),
        Raised(retry_after=[3]),
        Raised(retry_after=10**400),
        Raised(retry_after=lambda: 3),
        Raised(retry_after=timedelta(seconds=-3)),
        Raised(retry_after=Array()),
        Raised(headers=Barred()),
        SimpleNamespace(status=Array()),
        SimpleNamespace(usage=Barred()),
        Barred(),
        Raised(response=response(retry_after="")),
        Raised(response=SimpleNamespace(headers=7)),
        response(200, retry_after="4"),
        Broken(),
    ],
)
def test_what_says_nothing_asks_for_no_wait(answer: Any) -> None:
    assert retry_after(answer) == 0.0
    assert tokens_used(answer) is None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"total_tokens": 12}, 12),
        ({"input_tokens": 5, "output_tokens": 7}, 12),
        ({"input_tokens": 5}, None),
        ({"total_tokens": -1}, None),
        ({"total_tokens": "12"}, None),
        ({"total_tokens": True}, None),
    ],
)
def test_used_tokens_are_found_in_objects_and_in_dicts(
    usage: dict[str, Any], tokens: int | None
) -> None:
    assert tokens_used({"usage": usage}) == tokens
    assert tokens_used(SimpleNamespace(usage=SimpleNamespace(**usage))) == tokens

"""Read Retry-After and token usage from the answers and errors of model libraries.

No library is imported. They agree on a few attributes, which are looked up here. An object without
them tells nothing, and an exception raised by a lookup must never replace the answer itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

_RETRY_STATUSES = (429, 503, 529)
"""Too many requests, unavailable, overloaded."""


def retry_after(answer: Any) -> float:
    """Return the seconds that an error or a returned response asks to wait; 0 for none."""
    with suppress(Exception):
        return _retry_after(answer)
    return 0.0


def http_status(error: Any) -> Any:
    """Return the HTTP status of an error or of the response that it carries; None for none."""
    with suppress(Exception):
        status = _status(error)
        return _status(_attribute(error, "response")) if status is None else status
    return None


def tokens_used(answer: Any) -> int | None:
    """Return the tokens that an answer reports (`usage.total_tokens`, or input plus output)."""
    with suppress(Exception):
        return _tokens_used(answer)
    return None


def _retry_after(answer: Any) -> float:
    if not isinstance(answer, BaseException) and _status(answer) not in _RETRY_STATUSES:
        return 0.0
    told = _seconds(_attribute(answer, "retry_after"))
    if told is None:
        headers = _attribute(_attribute(answer, "response"), "headers")
        told = _in_headers(_attribute(answer, "headers") if headers is None else headers)
    return told or 0.0


def _tokens_used(answer: Any) -> int | None:
    usage = answer.get("usage") if isinstance(answer, dict) else _attribute(answer, "usage")
    total = _count(usage, "total_tokens")
    if total is not None:
        return total
    parts = [_count(usage, name) for name in ("input_tokens", "output_tokens")]
    return None if None in parts else sum(part for part in parts if part is not None)


def _status(answer: Any) -> Any:
    status = _attribute(answer, "status_code")
    return _attribute(answer, "status") if status is None else status


def _in_headers(headers: Any) -> float | None:
    if not isinstance(headers, Mapping):
        return None
    found = {str(name).lower(): value for name, value in headers.items()}
    in_ms = _seconds(found.get("retry-after-ms"))
    return in_ms / 1000 if in_ms is not None else _seconds(found.get("retry-after"))


def _seconds(value: Any) -> float | None:
    """Convert a number, a duration or an HTTP date into seconds; None for anything else."""
    number = math.nan
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif not isinstance(value, bool):
        try:
            number = float(value)
        except Exception:  # noqa: BLE001 - __float__ of a foreign object may raise anything
            if isinstance(value, str):
                number = _until(value)
    return number if 0 <= number < math.inf else None


def _until(date: str) -> float:
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return math.nan
    return (then - datetime.now(UTC if then.tzinfo is not None else None)).total_seconds()


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else _attribute(usage, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def _attribute(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign object may raise anything
        return None

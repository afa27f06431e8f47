"""What can be read off an answer of a model, or off an error: when to come back, what was used.

The libraries of the providers are strangers here. They agree on a few attributes, which are looked
for; whatever does not look like that says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_COME_BACK_LATER = (429, 503, 529)
"""Too many requests, unavailable, overloaded."""


def retry_after(answer: Any) -> float:
    """Seconds that an error, or a response that was returned, asks to wait for; 0 for none."""
    if not isinstance(answer, BaseException) and _status(answer) not in _COME_BACK_LATER:
        return 0.0
    told = _seconds(_attribute(answer, "retry_after"))
    if told is None:
        headers = _attribute(_attribute(answer, "response"), "headers")
        told = _in_headers(_attribute(answer, "headers") if headers is None else headers)
    return told or 0.0


def tokens_used(answer: Any) -> int | None:
    """How many tokens a call has used, if its answer tells: `usage.total_tokens`, or in and out."""
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
    """A number of seconds, or the time until a date; None for what is neither."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        try:
            date = parsedate_to_datetime(value)
        except (TypeError, ValueError):
            return None
        now = datetime.now(UTC if date.tzinfo is not None else None)
        number = (date - now).total_seconds()
    return number if 0 <= number < math.inf else None


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else _attribute(usage, name)
    return value if isinstance(value, int) and value >= 0 else None


def _attribute(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a stranger may raise anything
        return None

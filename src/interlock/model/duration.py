"""Durations as people write them: seconds, a timedelta, or text such as `"1h30m"`."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from interlock.errors import InvalidOption

Duration = float | int | timedelta | str

_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|sec|s|min|m|h|d)")


def seconds(value: Duration, what: str = "duration") -> float:
    """Return a duration in seconds. `what` names the option in the error."""
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, str):
        number = _parse(value, what)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number = _number(value)
    else:
        raise InvalidOption(
            f"{what} is {value!r}; write seconds, a timedelta or text such as '90s' or '1h30m'"
        )
    if not math.isfinite(number) or number < 0:
        raise InvalidOption(f"{what} is {value!r}; it must be zero or more, and finite")
    return number


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _parse(text: str, what: str) -> float:
    compact = text.replace(" ", "").lower()
    parts = _PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise InvalidOption(
            f"{what} is {text!r}, which is not a valid duration; use a number with a unit "
            "(ms, s, m, h or d), such as '90s' or '1h30m'"
        )
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def span(duration: float) -> str:
    """Format a length of time for people: `0.3 s`, `12 s`, `4 min 10 s`, `2 h 5 min`."""
    duration = max(duration, 0.0)
    if duration < 9.95:
        return f"{duration:.1f} s" if duration >= 0.05 else "0 s"
    whole = round(duration)
    if whole < 60:
        return f"{whole} s"
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    parts = []
    for size, name in units:
        if whole >= size:
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])

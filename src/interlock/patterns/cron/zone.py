"""Time zones: what a wall clock shows, and which moments it skips or shows twice."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo

from interlock.errors import InvalidOption

_DAY = 86_400


def zone_of(name: str | tzinfo | None, what: str) -> tzinfo:
    """The time zone of that name; UTC for None, without time zone data."""
    if name is None or name == "UTC":
        return UTC
    if isinstance(name, tzinfo):
        return name
    if not isinstance(name, str):
        raise InvalidOption(f"{what}: timezone is {name!r}; write a name such as 'Europe/Berlin'")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        if not zoneinfo.available_timezones():
            raise InvalidOption(
                f"{what}: timezone is {name!r}, but there is no time zone data on this machine: "
                "install the package `tzdata` (pip install tzdata, or that of the system), or use "
                "timezone='UTC', which needs none"
            ) from error
        raise InvalidOption(
            f"{what}: there is no time zone {name!r}; write a name such as 'Europe/Berlin'"
        ) from error


def shown_at(moment: float, zone: tzinfo) -> datetime:
    """What the wall clock shows at a moment (seconds since 1970), as a time without a zone."""
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None)


def first_moment_of(wall: datetime, zone: tzinfo) -> float:
    """When the wall clock shows this time for the first time.

    A time that it skips has come as soon as the clock was put forward: right after the gap.
    """
    moment = wall.replace(tzinfo=zone, fold=0).timestamp()
    if shown_at(moment, zone) == wall:
        return moment
    # For a skipped time, one fold counts from before the gap and the other from after it.
    return _bisect(wall.replace(tzinfo=zone, fold=1).timestamp(), moment, zone)


def moment_of(wall: datetime, like: float, zone: tzinfo) -> float:
    """When the clock would show this time with its offset at the moment `like`."""
    return (wall - _offset(like, zone)).replace(tzinfo=UTC).timestamp()


def change_between(earlier: float, later: float, zone: tzinfo) -> float | None:
    """The first moment after `earlier` and up to `later` at which the offset changes."""
    before = _offset(earlier, zone)
    at = earlier
    while at < later:
        # Day by day: no zone changes its offset twice in a day.
        following = min(at + _DAY, later)
        if _offset(following, zone) != before:
            return _bisect(at, following, zone)
        at = following
    return None


def _offset(moment: float, zone: tzinfo) -> timedelta:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    return timedelta(0) if offset is None else offset


def _bisect(earlier: float, later: float, zone: tzinfo) -> float:
    """The whole second at which the offset changes; it differs at the two ends."""
    low, high = int(earlier // 1), int(-(-later // 1))
    before = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle, zone) == before:
            low = middle
        else:
            high = middle
    return float(high)

"""Attempts with backoff, rates, breakers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from interlock.errors import InvalidOption
from interlock.model.duration import Duration, seconds

_QUOTA = re.compile(r"(\d+(?:\.\d+)?)([kKM]?)/(\d*)\s*(s|sec|min|m|h|hour|d|day)")
_SCALE = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}
_WINDOW = {
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """How many attempts a task gets, and how long to wait between them.

    The wait before attempt n + 1 is `backoff * 2 ** (n - 1)`, at most `max_backoff`, made up to
    `jitter` shorter (0.25: by at most a quarter), and never shorter than a Retry-After.
    """

    attempts: int
    backoff: float
    max_backoff: float
    jitter: float

    def __init__(
        self,
        attempts: int = 3,
        backoff: Duration = 1.0,
        max_backoff: Duration = 60.0,
        jitter: float = 0.25,
    ) -> None:
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise InvalidOption(f"attempts is {attempts!r}; it must be a whole number, 1 or more")
        if not isinstance(jitter, (int, float)) or not 0 <= jitter <= 1:
            raise InvalidOption(f"jitter is {jitter!r}; it must be between 0 and 1")
        object.__setattr__(self, "attempts", attempts)
        object.__setattr__(self, "backoff", seconds(backoff, "backoff"))
        object.__setattr__(self, "max_backoff", seconds(max_backoff, "max_backoff"))
        object.__setattr__(self, "jitter", jitter)

    def wait(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after attempt number `attempt`. `chance` is in [0, 1)."""
        full = min(self.max_backoff, self.backoff * 2.0 ** min(attempt - 1, 60))
        return full * (1.0 - self.jitter * chance)


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `amount` in any window of `window` seconds."""

    amount: int
    window: float

    def __post_init__(self) -> None:
        if isinstance(self.amount, bool) or not isinstance(self.amount, int) or self.amount < 1:
            raise InvalidOption(f"a quota of {self.amount!r} lets nothing through; write 1 or more")
        if not 0 < self.window < math.inf:
            raise InvalidOption(
                f"a quota's window is {self.window!r}; it must be above 0 seconds, and finite"
            )

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Parse `60/min`, `100k/min`, `3/s` or `10/5s`."""
        found = _QUOTA.fullmatch(text.strip())
        if not found:
            raise InvalidOption(f"{text!r} is not a quota; write '60/min', '100k/min' or '10/5s'")
        number, scale, count, unit = found.groups()
        amount = float(number) * _SCALE[scale]
        if amount > 1e15:
            raise InvalidOption(f"{text!r}: a quota of that size limits nothing")
        return cls(round(amount), float(count or 1) * _WINDOW[unit])


@dataclass(frozen=True, slots=True, init=False)
class Rate:
    """A limit over time, shared by all that use it: requests, and an amount such as tokens."""

    requests: Quota | None
    tokens: Quota | None

    def __init__(
        self, requests: Quota | str | None = None, tokens: Quota | str | None = None
    ) -> None:
        if requests is None and tokens is None:
            raise InvalidOption("a Rate needs requests=, tokens= or both")
        object.__setattr__(self, "requests", _quota("requests", requests))
        object.__setattr__(self, "tokens", _quota("tokens", tokens))


@dataclass(frozen=True, slots=True, init=False)
class Breaker:
    """A circuit breaker: opens after `failures` consecutive failures of tasks that use it.

    While it is open, no such task starts. After `cool_down` it is half-open: exactly one attempt
    may start. If that succeeds the breaker closes, otherwise it is open for another `cool_down`.
    """

    failures: int
    cool_down: float

    def __init__(self, failures: int = 3, cool_down: Duration = 30.0) -> None:
        if isinstance(failures, bool) or not isinstance(failures, int) or failures < 1:
            raise InvalidOption(f"failures is {failures!r}; it must be a whole number, 1 or more")
        object.__setattr__(self, "failures", failures)
        object.__setattr__(self, "cool_down", seconds(cool_down, "cool_down"))


def _quota(name: str, value: Quota | str | None) -> Quota | None:
    if not isinstance(value, Quota | str | None):
        raise InvalidOption(f"{name} is {value!r}; write a quota such as '60/min'")
    return Quota.parse(value) if isinstance(value, str) else value

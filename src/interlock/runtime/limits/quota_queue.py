"""Who waits to be let through a rate outside of a run, in which order, and for what."""

from __future__ import annotations

import math
from collections.abc import Callable

from interlock.kernel.meters import Meter
from interlock.model.limits import Quota

PATIENCE = 1.0
"""Seconds after which somebody whose turn it is, and who does not come, is passed."""


class QuotaWaiter:
    """Somebody who wants to be let through."""

    __slots__ = ("behind_strangers", "due", "home", "lane", "since", "tokens", "wake", "went")

    def __init__(
        self, lane: QuotaQueue, tokens: int, home: object, wake: Callable[[], object]
    ) -> None:
        self.lane = lane
        self.tokens = tokens
        self.home = home
        """The loop or the thread that it waits on."""
        self.wake = wake
        self.since = self.went = math.inf
        self.due = math.inf
        """When it is to go, once it knows that it is next."""
        self.behind_strangers = False
        """Whether somebody came before it who waits on another loop or thread."""


class QuotaQueue:
    """What has quotas and a line of its own: a model."""

    def __init__(self, name: str, requests: Quota | None, tokens: Quota | None) -> None:
        self._name = name or "calls"
        self.gate = Meter(f"{self._name} (Retry-After)", 1, 1.0)
        """Nothing is taken from it; it is closed while a Retry-After is to be obeyed."""
        self.requests: Meter | None = None
        self.tokens: Meter | None = None
        self.line: dict[QuotaWaiter, None] = {}
        """Who waits, oldest first."""
        self.change(requests, tokens)

    def change(self, requests: Quota | None, tokens: Quota | None) -> None:
        """Change the quotas; what was used up stays so."""
        self.requests = _changed(self.requests, f"{self._name} (requests)", requests)
        self.tokens = _changed(self.tokens, f"{self._name} (tokens)", tokens)

    def join(self, ask: QuotaWaiter, now: float) -> None:
        """Stand at the end of the line."""
        last = next(reversed(self.line), None)
        if last is not None:
            ask.behind_strangers = last.behind_strangers or last.home is not ask.home
        ask.since = now
        self.line[ask] = None

    def next(self, now: float, late: set[object]) -> QuotaWaiter | None:
        """Whose turn it is: the oldest on a loop or thread that comes when it is its turn."""
        for ask in self.line:
            if ask.due + PATIENCE < now:
                late.add(ask.home)  # the loop is blocked, or nobody runs it any more
            if ask.home not in late:
                return ask
        return None

    def call_next(self, now: float, late: set[object]) -> None:
        """Tell whoever's turn it is to look."""
        while (ask := self.next(now, late)) is not None:
            ask.due = min(ask.due, now)
            try:
                ask.wake()
            except RuntimeError:  # its loop was closed: it will never come
                del self.line[ask]
            else:
                return


def _changed(meter: Meter | None, name: str, quota: Quota | None) -> Meter | None:
    if quota is None:
        return None
    if meter is None:
        return Meter(name, quota.amount, quota.window)
    meter.window = quota.window
    meter.resize(quota.amount)
    return meter

"""Calls that wait for a quota outside of a run, in the order in which they came."""

from __future__ import annotations

import math
from collections.abc import Callable

from interlock.kernel.meters import Meter
from interlock.model.limits import Quota

PATIENCE = 1.0
"""Seconds after which a waiter that is next and does not react is passed over."""


class QuotaWaiter:
    """A call that waits, on an event loop or in a thread."""

    __slots__ = ("behind_others", "due", "queue", "since", "tokens", "waits_on", "wake", "went")

    def __init__(
        self, queue: QuotaQueue, tokens: int, waits_on: object, wake: Callable[[], object]
    ) -> None:
        self.queue = queue
        self.tokens = tokens
        self.waits_on = waits_on
        """The event loop or the thread that it waits on."""
        self.wake = wake
        self.since = self.went = math.inf
        self.due = math.inf
        """When it may proceed, once it has seen that it is next."""
        self.behind_others = False
        """Whether a waiter before it waits on another loop or thread."""


class QuotaQueue:
    """The quotas of one model, and the calls that wait for them."""

    def __init__(self, name: str, requests: Quota | None, tokens: Quota | None) -> None:
        self._name = name or "calls"
        self.gate = Meter(f"{self._name} (Retry-After)", 1, 1.0)
        """Nothing is taken from it; it is closed while a Retry-After is in force."""
        self.requests: Meter | None = None
        self.tokens: Meter | None = None
        self.waiters: dict[QuotaWaiter, None] = {}
        """Waiting calls, oldest first; a dict, because any of them may leave."""
        self.change(requests, tokens)

    def change(self, requests: Quota | None, tokens: Quota | None) -> None:
        """Change the quotas; amounts in use stay in use."""
        self.requests = _changed(self.requests, f"{self._name} (requests)", requests)
        self.tokens = _changed(self.tokens, f"{self._name} (tokens)", tokens)

    def join(self, waiter: QuotaWaiter, now: float) -> None:
        """Append a waiter."""
        last = next(reversed(self.waiters), None)
        if last is not None:
            waiter.behind_others = last.behind_others or last.waits_on is not waiter.waits_on
        waiter.since = now
        self.waiters[waiter] = None

    def next(self, now: float, late: set[object]) -> QuotaWaiter | None:
        """The oldest waiter whose loop or thread reacts; loops that do not are added to `late`."""
        for waiter in self.waiters:
            if waiter.due + PATIENCE < now:
                late.add(waiter.waits_on)  # the loop is blocked, or has stopped running
            if waiter.waits_on not in late:
                return waiter
        return None

    def call_next(self, now: float, late: set[object]) -> None:
        """Wake up the waiter that is next."""
        while (waiter := self.next(now, late)) is not None:
            waiter.due = min(waiter.due, now)
            try:
                waiter.wake()
            except RuntimeError:  # its loop was closed: it will never proceed
                del self.waiters[waiter]
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

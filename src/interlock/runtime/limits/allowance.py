"""Rates for callers outside of a run: one allowance for any number of loops and threads.

The meters are the kernel's. What is missing of a kernel is missing on purpose: nobody here holds
anything, so there is nothing to admit, only a line. And nobody is *granted* anything: whoever is
next looks at the clock itself and goes at that very moment. A grant that is made elsewhere would be
used a little later, one more and one less, and two calls could come closer than the rate allows.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from interlock.errors import ImpossibleClaim, ShuttingDown
from interlock.kernel.meters import Meter, describe_rate_limit
from interlock.model.limits import Quota
from interlock.model.why import RateLimited
from interlock.runtime.limits.quota_queue import PATIENCE, QuotaQueue, QuotaWaiter


class Allowance:
    """What may be used: `overall` by everybody together, and by each lane what it was given."""

    def __init__(
        self, overall: Mapping[str, Quota], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._overall = [Meter(name, each.amount, each.window) for name, each in overall.items()]
        self._clock = clock
        self._lanes: dict[str, QuotaQueue] = {}
        self._lined: dict[QuotaQueue, None] = {}
        """Lanes where somebody waits: a call looks at these, not at all that were ever used."""
        self._late: set[object] = set()
        """Loops and threads that did not come when it was their turn."""
        self._lock = threading.Lock()
        self._closed = False

    # -- going through ----------------------------------------------------------------------

    async def take(self, lane: str, tokens: int) -> QuotaWaiter:
        """Wait until it may go, on this event loop."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        ask = QuotaWaiter(
            self._lanes[lane], tokens, loop, partial(loop.call_soon_threadsafe, woken.set)
        )
        try:
            while (wait := self._look(ask)) is not None:
                timer = None if wait == math.inf else loop.call_later(wait, woken.set)
                try:
                    await woken.wait()
                finally:
                    if timer is not None:
                        timer.cancel()
                woken.clear()
        except GeneratorExit:
            # A collection of garbage, which may have come while this very thread has the lock.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave, ask)
            raise
        except BaseException:
            self._leave(ask)
            raise
        return ask

    def take_blocking(self, lane: str, tokens: int, go_on: Callable[[], object]) -> QuotaWaiter:
        """The same on this thread; `go_on` is called now and then, and may raise."""
        woken = threading.Event()
        ask = QuotaWaiter(self._lanes[lane], tokens, woken, woken.set)
        try:
            while (wait := self._look(ask)) is not None:
                woken.wait(min(wait, PATIENCE))
                woken.clear()
                go_on()
        except BaseException:
            self._leave(ask)
            raise
        return ask

    def _look(self, ask: QuotaWaiter) -> float | None:
        """Go now, and return None; or how long to wait before looking again."""
        with self._lock:
            if self._closed:
                raise ShuttingDown("this limiter was closed; it lets no more calls through")
            now, lane = self._clock(), ask.lane
            if ask not in lane.line:
                lane.join(ask, now)
                self._lined[lane] = None
            self._late.discard(ask.home)
            ask.due = math.inf
            ahead = lane.next(now, self._late)
            if ahead is not ask:
                if ahead is not None and ahead.due == math.inf:
                    lane.call_next(now, self._late)
                # Whoever goes calls the next one; but who waits on another loop may never come.
                return PATIENCE if ask.behind_strangers else math.inf
            self._check(ask)
            ask.due = max((each.until for each in self._short(ask, now)), default=now)
            if ask.due > now:
                return _until(ask.due, now)
            if self._is_second(ask, now):
                return PATIENCE / 2
            for meter, amount in self._needs(ask):
                if meter is not lane.gate:
                    meter.spend(amount, ask, now)
            ask.went = now
            del lane.line[ask]
            self._call_next(now)
            return None

    def _leave(self, ask: QuotaWaiter) -> None:
        with self._lock:
            if ask in ask.lane.line:
                del ask.lane.line[ask]
                self._call_next(self._clock())

    def _is_second(self, ask: QuotaWaiter, now: float) -> bool:
        """Whether somebody older in another lane could go now as well, and so goes first."""
        others = (each.next(now, self._late) for each in self._lined)
        return any(
            other is not None and other.since < ask.since and not any(self._short(other, now))
            for other in others
        )

    def _call_next(self, now: float) -> None:
        """Something has changed: whoever is next in a lane looks again."""
        for lane in tuple(self._lined):
            lane.call_next(now, self._late)
            if not lane.line:
                del self._lined[lane]

    # -- amounts ----------------------------------------------------------------------------

    def _needs(self, ask: QuotaWaiter) -> Iterator[tuple[Meter, int]]:
        lane = ask.lane
        yield lane.gate, 1
        for meter in (*self._overall, lane.requests):
            if meter is not None:
                yield meter, 1
        if lane.tokens is not None:
            yield lane.tokens, ask.tokens

    def _short(self, ask: QuotaWaiter, now: float) -> Iterator[RateLimited]:
        for meter, amount in self._needs(ask):
            meter.give_back(now)
            if not meter.fits(min(amount, meter.most), ()):
                yield describe_rate_limit(meter, amount)

    def _check(self, ask: QuotaWaiter) -> None:
        for meter, amount in self._needs(ask):
            if amount > meter.most:
                raise ImpossibleClaim(
                    f"a call with {amount} tokens could never be let through: "
                    f"the quota of {meter.name!r} is {meter.most}"
                )

    def settle(self, ask: QuotaWaiter, tokens: int) -> None:
        """Replace the tokens that were taken by those that were used."""
        with self._lock:
            meter = ask.lane.tokens
            if meter is None:
                return
            for spent in meter.spent:
                if spent.taker is ask:
                    meter.used += tokens - spent.amount
                    spent.amount = tokens
                    self._call_next(self._clock())
                    return

    # -- limits -----------------------------------------------------------------------------

    def open_lane(self, name: str, requests: Quota | None, tokens: Quota | None) -> None:
        """Make a lane with these quotas, unless it is there."""
        if name not in self._lanes:
            with self._lock:
                self._lanes.setdefault(name, QuotaQueue(name, requests, tokens))

    def change_lane(self, name: str, requests: Quota | None, tokens: Quota | None) -> None:
        """Give a lane other quotas; what was used up stays so."""
        self.open_lane(name, requests, tokens)
        with self._lock:
            self._lanes[name].change(requests, tokens)
            if self._lanes[name].line:
                self._lanes[name].call_next(self._clock(), self._late)

    def hold(self, lane: str, duration: float) -> None:
        """Let nobody through a lane for some time; never for less than it was to be."""
        with self._lock:
            gate, now = self._lanes[lane].gate, self._clock()
            gate.closed_since = gate.closed_since if gate.closed_until else now
            gate.closed_until = max(gate.closed_until, now + duration)

    def close(self) -> None:
        """Let nobody through any more; those who wait are told."""
        with self._lock:
            self._closed = True
            for lane in self._lined:
                for ask in lane.line:
                    with suppress(RuntimeError):
                        ask.wake()

    # -- looking ----------------------------------------------------------------------------

    def waiting(self) -> dict[str, int]:
        """How many wait in each lane where somebody does."""
        with self._lock:
            return {name: len(lane.line) for name, lane in self._lanes.items() if lane.line}

    def why(self, lane: str) -> list[str]:
        """Why the next call of a lane has to wait, or would have to."""
        with self._lock:
            now, found = self._clock(), self._lanes[lane]
            ask = next(iter(found.line), None) or QuotaWaiter(found, 1, None, bool)
            return [each.describe(now) for each in self._short(ask, now)]


def _until(due: float, now: float) -> float:
    """How long to wait; never so short that, by rounding, it would still be too early."""
    wait = due - now
    while now + wait < due:
        wait = math.nextafter(wait, math.inf)
    return wait

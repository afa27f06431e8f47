"""Rates for callers outside of a run: one allowance for any number of loops and threads.

The meters are those of the kernel, but there is no kernel: a call holds nothing, so there is
nothing to admit, only a queue. Calls are not *granted* anything either. The call that is next
reads the clock itself and proceeds at that moment. A grant made on another thread would be used a
little later, by a varying delay, and two calls could come closer together than the rate allows.
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
    """The quotas: `overall` for all calls together, and those of each queue."""

    def __init__(
        self, overall: Mapping[str, Quota], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._overall = [Meter(name, each.amount, each.window) for name, each in overall.items()]
        self._clock = clock
        self._queues: dict[str, QuotaQueue] = {}
        self._busy: dict[QuotaQueue, None] = {}
        """Queues with waiting calls: only these are looked at, not all that were ever used."""
        self._late: set[object] = set()
        """Loops and threads that did not react when they were next."""
        self._lock = threading.Lock()
        self._closed = False

    # -- taking -----------------------------------------------------------------------------

    async def take(self, name: str, tokens: int) -> QuotaWaiter:
        """Wait on this event loop until the quotas allow a call, and take from them."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        waiter = QuotaWaiter(
            self._queues[name], tokens, loop, partial(loop.call_soon_threadsafe, woken.set)
        )
        try:
            while (wait := self._look(waiter)) is not None:
                timer = None if wait == math.inf else loop.call_later(wait, woken.set)
                try:
                    await woken.wait()
                finally:
                    if timer is not None:
                        timer.cancel()
                woken.clear()
        except GeneratorExit:
            # A garbage collection, which may run while this very thread has the lock.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave, waiter)
            raise
        except BaseException:
            self._leave(waiter)
            raise
        return waiter

    def take_blocking(self, name: str, tokens: int, go_on: Callable[[], object]) -> QuotaWaiter:
        """The same on this thread; `go_on` is called from time to time, and may raise."""
        woken = threading.Event()
        waiter = QuotaWaiter(self._queues[name], tokens, woken, woken.set)
        try:
            while (wait := self._look(waiter)) is not None:
                woken.wait(min(wait, PATIENCE))
                woken.clear()
                go_on()
        except BaseException:
            self._leave(waiter)
            raise
        return waiter

    def _look(self, waiter: QuotaWaiter) -> float | None:
        """Take now, and return None; or return how long to wait before looking again."""
        with self._lock:
            if self._closed:
                raise ShuttingDown("this limiter is closed and accepts no more calls")
            now, queue = self._clock(), waiter.queue
            if waiter not in queue.waiters:
                queue.join(waiter, now)
                self._busy[queue] = None
            self._late.discard(waiter.waits_on)
            waiter.due = math.inf
            ahead = queue.next(now, self._late)
            if ahead is not waiter:
                if ahead is not None and ahead.due == math.inf:
                    queue.call_next(now, self._late)
                # A call that proceeds wakes up the next one. A loop that has stopped never does, so
                # behind calls of other loops look again after a while.
                return PATIENCE if waiter.behind_others else math.inf
            self._check(waiter)
            waiter.due = max((each.until for each in self._short(waiter, now)), default=now)
            if waiter.due > now:
                return _until(waiter.due, now)
            if self._is_second(waiter, now):
                return PATIENCE / 2
            for meter, amount in self._needs(waiter):
                if meter is not queue.gate:
                    meter.spend(amount, waiter, now)
            waiter.went = now
            del queue.waiters[waiter]
            self._call_next(now)
            return None

    def _leave(self, waiter: QuotaWaiter) -> None:
        with self._lock:
            if waiter in waiter.queue.waiters:
                del waiter.queue.waiters[waiter]
                self._call_next(self._clock())

    def _is_second(self, waiter: QuotaWaiter, now: float) -> bool:
        """Whether an older call of another queue could proceed now as well, and so goes first."""
        others = (each.next(now, self._late) for each in self._busy)
        return any(
            other is not None and other.since < waiter.since and not any(self._short(other, now))
            for other in others
        )

    def _call_next(self, now: float) -> None:
        """Something has changed: the next call of each queue looks again."""
        for queue in tuple(self._busy):
            queue.call_next(now, self._late)
            if not queue.waiters:
                del self._busy[queue]

    # -- amounts ----------------------------------------------------------------------------

    def _needs(self, waiter: QuotaWaiter) -> Iterator[tuple[Meter, int]]:
        queue = waiter.queue
        yield queue.gate, 1
        for meter in (*self._overall, queue.requests):
            if meter is not None:
                yield meter, 1
        if queue.tokens is not None:
            yield queue.tokens, waiter.tokens

    def _short(self, waiter: QuotaWaiter, now: float) -> Iterator[RateLimited]:
        for meter, amount in self._needs(waiter):
            meter.give_back(now)
            if not meter.fits(min(amount, meter.most), ()):
                yield describe_rate_limit(meter, amount)

    def _check(self, waiter: QuotaWaiter) -> None:
        for meter, amount in self._needs(waiter):
            if amount > meter.most:
                raise ImpossibleClaim(
                    f"a call with {amount} tokens could never proceed: "
                    f"the quota of {meter.name!r} is {meter.most}"
                )

    def settle(self, waiter: QuotaWaiter, tokens: int) -> None:
        """Replace the tokens that were taken by those that were used."""
        with self._lock:
            meter = waiter.queue.tokens
            if meter is None:
                return
            for spent in meter.spent:
                if spent.taker is waiter:
                    meter.used += tokens - spent.amount
                    spent.amount = tokens
                    self._call_next(self._clock())
                    return

    # -- limits -----------------------------------------------------------------------------

    def open_queue(self, name: str, requests: Quota | None, tokens: Quota | None) -> None:
        """Make a queue with these quotas, unless it exists."""
        if name not in self._queues:
            with self._lock:
                self._queues.setdefault(name, QuotaQueue(name, requests, tokens))

    def change_queue(self, name: str, requests: Quota | None, tokens: Quota | None) -> None:
        """Give a queue other quotas; amounts in use stay in use."""
        self.open_queue(name, requests, tokens)
        with self._lock:
            self._queues[name].change(requests, tokens)
            if self._queues[name].waiters:
                self._queues[name].call_next(self._clock(), self._late)

    def hold(self, name: str, duration: float) -> None:
        """Close a queue for some time; a longer hold that is in force stays."""
        with self._lock:
            gate, now = self._queues[name].gate, self._clock()
            gate.closed_since = gate.closed_since if gate.closed_until else now
            gate.closed_until = max(gate.closed_until, now + duration)

    def close(self) -> None:
        """Reject all calls from now on, including those that wait."""
        with self._lock:
            self._closed = True
            for queue in self._busy:
                for waiter in queue.waiters:
                    with suppress(RuntimeError):
                        waiter.wake()

    # -- looking ----------------------------------------------------------------------------

    def waiting(self) -> dict[str, int]:
        """The number of waiting calls in each queue that has any."""
        with self._lock:
            return {
                name: len(queue.waiters) for name, queue in self._queues.items() if queue.waiters
            }

    def why(self, name: str) -> list[str]:
        """The reasons why the next call of a queue waits, or would wait."""
        with self._lock:
            now, found = self._clock(), self._queues[name]
            waiter = next(iter(found.waiters), None) or QuotaWaiter(found, 1, None, bool)
            return [each.describe(now) for each in self._short(waiter, now)]


def _until(due: float, now: float) -> float:
    """How long to wait, rounded up: the wake-up must not come too early."""
    wait = due - now
    while now + wait < due:
        wait = math.nextafter(wait, math.inf)
    return wait

"""Meters: resources of which there is an amount, such as slots, instances, memory and rates.

What a capacity gives out comes back at release; what a rate gives out comes back when its window
has passed, whatever the taker does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.kernel.lines import WaitingLine
from interlock.model.why import RateLimited

if TYPE_CHECKING:
    from interlock.kernel.waiters import Grant, Profile, Waiter
    from interlock.model.why import Reason

ALL = 0
"""The amount that stands for *all of it, exclusively*."""


class Spent:
    """An amount that a rate gave out. `taker` is needed to correct it by what was really used."""

    __slots__ = ("amount", "at", "taker")

    def __init__(self, at: float, amount: int, taker: object) -> None:
        self.at = at
        self.amount = amount
        self.taker = taker


class Meter:
    """A counted resource: a capacity, or with a `window` a rate."""

    __slots__ = (
        "alone",
        "because",
        "capacity",
        "closed_since",
        "closed_until",
        "counted",
        "level",
        "line",
        "most",
        "name",
        "ration",
        "reserved",
        "spent",
        "turns",
        "used",
        "watchers",
        "window",
        "zombies",
    )

    def __init__(self, name: str, capacity: int, window: float | None = None) -> None:
        self.name = name
        self.most = capacity
        """How much there is of it. A claim on more can never be granted."""
        self.capacity = capacity
        """How much of it may be in use now: less than there is while it is throttled."""
        self.level: int | None = None
        """While it is throttled: how much may be in use at most."""
        self.ration: int | None = None
        """While it is throttled: how much more may be given out, whatever comes back."""
        self.because: Reason | None = None
        """Why it is throttled."""
        self.window = window
        self.used = 0
        self.alone: dict[Grant, None] = {}
        """The grants that hold all of it exclusively: one, or one and its descendants."""
        self.zombies = 0
        """How many zombies hold some of it."""
        self.line: WaitingLine[Waiter] = WaitingLine()
        """The waiters that need some of it, oldest first."""
        self.counted: Waiter | None = None
        """The waiter whose overtaking is counted now; `turns` yields those after it."""
        self.turns: Iterator[Waiter] = iter(())
        self.reserved: Waiter | None = None
        """A waiter that was overtaken too often: no other waiter takes any before it does."""
        self.watchers: dict[Profile, None] = {}
        """Profiles that are set aside because they lack this."""
        self.spent: deque[Spent] = deque()
        """For a rate: what was given out within the window, oldest first."""
        self.closed_until = 0.0
        """For a rate: nothing is given out before this time (Retry-After). 0: it is open."""
        self.closed_since = 0.0

    def fits(self, amount: int, lenders: tuple[Grant, ...]) -> bool:
        """Whether an amount is available, with what the ancestors of the waiter could lend."""
        if self.closed_until:
            return False
        if lenders and self.window is None:
            return self._fits_with(amount, lenders)
        if self.alone:
            return False
        if amount == ALL:
            return self.used == 0 < self.capacity
        return self.used + amount <= self.capacity

    def _fits_with(self, amount: int, lenders: tuple[Grant, ...]) -> bool:
        lendable = sum(grant.lendable(self) for grant in lenders)
        if not all(grant in lenders for grant in self.alone):
            return False
        if amount == ALL:
            return self.used == lendable and self.capacity > 0
        return amount <= max(0, self.capacity - self.used) + lendable

    def resize(self, most: int) -> None:
        """Change how much there is of it."""
        self.most = most
        self._fit()

    def throttle(self, level: int | None, ration: int | None, because: Reason | None) -> None:
        """Let less be in use than there is, or give out only so much more; None lifts that."""
        self.level, self.ration, self.because = level, ration, because
        self._fit()

    def count(self, change: int) -> None:
        """Change how much of it is in use."""
        self.used += change
        if self.ration is not None:
            # A ration is used up by what goes out; what comes back does not refill it.
            self.ration = max(0, self.ration - max(0, change))
            self._fit()

    def _fit(self) -> None:
        self.capacity = self.most if self.level is None else min(self.most, self.level)
        if self.ration is not None:
            self.capacity = min(self.capacity, self.used + self.ration)

    def is_reserved_against(self, waiter: Waiter) -> bool:
        """Whether it is reserved for another waiter, which no zombie keeps from it."""
        ahead = self.reserved
        return ahead not in (None, waiter) and not self.zombies and not waiter.profile.exempt

    def spend(self, amount: int, taker: object, now: float) -> Spent:
        """For a rate: give out an amount that fits."""
        self.used += amount
        spent = Spent(now, amount, taker)
        self.spent.append(spent)
        return spent

    def give_back(self, now: float) -> float | None:
        """For a rate: take back what has left the window. Return when more will, if it will."""
        if self.closed_until and self.closed_until <= now:
            self.closed_until = 0.0
        window = self.window
        assert window is not None
        while self.spent and self.spent[0].at + window <= now:
            self.used -= self.spent.popleft().amount
        times = [self.spent[0].at + window] if self.spent else []
        if self.closed_until:
            times.append(self.closed_until)
        return min(times, default=None)


def describe_rate_limit(meter: Meter, amount: int) -> RateLimited:
    """Explain why a rate does not have an amount left; `until` is when it will have."""
    assert meter.window is not None
    free, until = meter.capacity - meter.used, meter.closed_until
    since = meter.closed_since if until else meter.spent[0].at
    for spent in meter.spent:
        if free >= amount:
            break
        free += spent.amount
        until = max(until, spent.at + meter.window)
    left = 0 if meter.closed_until else max(0, meter.capacity - meter.used)
    return RateLimited(meter.name, amount, left, meter.capacity, meter.window, since, until)

"""Resources of which there is an amount: slots, instances of an agent, memory, rates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.kernel.lines import Line
from interlock.model.why import RateLimited

if TYPE_CHECKING:
    from interlock.kernel.waiters import Grant, Profile, Waiter
    from interlock.model.why import Reason

ALL = 0
"""The amount that stands for *all of it, alone*."""


class Spent:
    """What a rate gave out when; `taker` says to whom, for settling what was really used."""

    __slots__ = ("amount", "at", "taker")

    def __init__(self, at: float, amount: int, taker: object) -> None:
        self.at = at
        self.amount = amount
        self.taker = taker


class Meter:
    """A counted resource. What a rate gives out comes back after its window, not at release."""

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
        """How much there is of it; what asks for more can never be had."""
        self.capacity = capacity
        """How much of it may be in use now: less than there is while it is throttled."""
        self.level: int | None = None
        self.ration: int | None = None
        """How much more may be given out, whatever comes back."""
        self.because: Reason | None = None
        """Why it is throttled."""
        self.window = window
        self.used = 0
        self.alone: dict[Grant, None] = {}
        """Who holds all of it: one, or one and its descendants."""
        self.zombies = 0
        """How many zombies hold some of it."""
        self.line = Line()
        """Those who wait for some of it, oldest first."""
        self.counted: Waiter | None = None
        """The one of them whose overtaking is counted now, and `turns` those who come after it."""
        self.turns: Iterator[Waiter] = iter(())
        self.reserved: Waiter | None = None
        """A waiter after too many went past it: nobody else takes before it does."""
        self.watchers: dict[Profile, None] = {}
        """Profiles whose waiters lack this."""
        self.spent: deque[Spent] = deque()
        """For a rate: what was given out within the window, oldest first."""
        self.closed_until = 0.0
        self.closed_since = 0.0

    def fits(self, amount: int, lenders: tuple[Grant, ...]) -> bool:
        """Whether the amount is there, counting what the asker's ancestors could lend."""
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
        """There is so much of it now."""
        self.most = most
        self._fit()

    def throttle(self, level: int | None, ration: int | None, because: Reason | None) -> None:
        """Let less of it be in use than there is, or give out only so much more."""
        self.level, self.ration, self.because = level, ration, because
        self._fit()

    def count(self, change: int) -> None:
        """More or less of it is in use."""
        self.used += change
        if self.ration is not None:
            self.ration = max(0, self.ration - max(0, change))
            self._fit()

    def _fit(self) -> None:
        self.capacity = self.most if self.level is None else min(self.most, self.level)
        if self.ration is not None:
            self.capacity = min(self.capacity, self.used + self.ration)

    def is_reserved_against(self, waiter: Waiter) -> bool:
        """Whether it is reserved for somebody else, whom no zombie keeps from it."""
        ahead = self.reserved
        return ahead not in (None, waiter) and not self.zombies and not waiter.profile.exempt

    def spend(self, amount: int, taker: object, now: float) -> Spent:
        """For a rate: give out an amount that was seen to fit."""
        self.used += amount
        spent = Spent(now, amount, taker)
        self.spent.append(spent)
        return spent

    def give_back(self, now: float) -> float | None:
        """For a rate: return what the window has passed for; when more comes back, if it will."""
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
    """What to say to those for whom a rate has not enough left: `until` is when it has."""
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

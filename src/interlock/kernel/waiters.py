"""Those who wait for claims, and what they get.

A queue can be a million tasks long, so a waiter is small: what most of them never need is in
records of its own, and until it is needed they all share an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.kernel.shelves import Shelf

if TYPE_CHECKING:
    from interlock.kernel.meters import Meter
    from interlock.kernel.places import Place

Rank = tuple[float, float, float]
"""The order of starts, smallest first: minus priority, minus rank, minus claims."""

Item = tuple[Rank, int, "Waiter"]
"""A waiter in a heap: its rank, its arrival, itself. A waiter that moves gets a new one."""

Needs = tuple[tuple["Place", bool], ...]
"""Places, each with whether it is to be written."""

Amounts = tuple[tuple["Meter", int], ...]

_NOTHING: Mapping[Any, int] = MappingProxyType({})


class Grant:
    """All that one attempt, or something outside the run, holds."""

    # Few have more than places and a slot; what is written here comes instead of these defaults.
    places: Needs = ()
    amounts: Mapping[Meter, int] = _NOTHING
    lent: Mapping[Meter, int] = _NOTHING
    """What of the amounts its children use."""
    loans: tuple[tuple[Grant, Meter, int], ...] = ()
    holds_slot = False
    zombie = False
    """It was told to stop, and is not gone."""
    released = False

    def __init__(self, since: float) -> None:
        self.since = since

    @property
    def ends_at(self) -> float | None:
        """When it is expected to be released, if there is an estimate."""
        return None

    def lendable(self, meter: Meter) -> int:
        """How much of a meter this grant holds and has not lent out."""
        return self.amounts.get(meter, 0) - self.lent.get(meter, 0)

    def hold(self, meter: Meter, amount: int) -> None:
        """Note that it holds so much more."""
        self.amounts = {**self.amounts, meter: self.amounts.get(meter, 0) + amount}

    def lend(self, meter: Meter, amount: int) -> None:
        """Note that its children use so much more of what it holds, or less."""
        self.lent = {**self.lent, meter: self.lent.get(meter, 0) + amount}


class Traits(NamedTuple):
    """What the waiters of a profile have in common."""

    amounts: Amounts = ()
    kin: tuple[Grant, ...] = ()
    """Grants whose places they may share; the own one first in mid-flight."""
    is_request: bool = False
    has_slot: bool = False
    """They hold a slot already."""
    is_awaited: bool = False
    """Something that runs waits for them."""
    patterned: bool = False
    """There are patterns among their claims."""


class Profile:
    """Waiters that need the same amounts of the same meters: they lack capacity together."""

    __slots__ = (
        "amounts",
        "count",
        "exempt",
        "free",
        "has_slot",
        "is_request",
        "kin",
        "lacks",
        "lenders",
        "listed",
        "patterned",
        "shelves",
        "traits",
    )

    def __init__(self, traits: Traits) -> None:
        self.traits = traits
        self.amounts, self.kin, self.is_request, self.has_slot, awaited, self.patterned = traits
        self.exempt = self.is_request or bool(self.kin) or awaited
        """Whether they pass reservations: in mid-flight, and what such waits may be for."""
        # Amounts are shared only with ancestors: who asks for more in mid-flight wants more.
        self.lenders = self.kin[1:] if self.is_request else self.kin
        self.count = 0
        self.lacks: Meter | None = None
        """The meter that was found to be short."""
        self.free = Shelf(self, None)
        self.shelves: list[tuple[Item, int, Shelf]] = []
        """A heap of shelves with somebody on them who might be able to start."""
        self.listed: tuple[Item, int, Profile] | None = None

    def short(self, waiter: Waiter) -> Meter | None:
        """A meter of which there is not enough for this waiter."""
        for meter, amount in self.amounts:
            if not meter.fits(amount, self.lenders) or meter.is_reserved_against(waiter):
                return meter
        return None


class Overtaken:
    """How often younger ones went past a waiter."""

    __slots__ = ("for_capacity", "is_due", "last_overtaker", "last_taker", "times")

    def __init__(self) -> None:
        self.times = 0
        self.for_capacity = 0
        self.last_overtaker = 0
        self.last_taker = 0
        self.is_due = False
        """Nobody younger may pass it any more, but for those who are out of its way in time."""


NEVER_OVERTAKEN = Overtaken()
"""Shared by all who were not passed; nothing is written into it."""


class Waiter:
    """One wait for claims: of a task that is ready, or of a running attempt in mid-flight."""

    __slots__ = ("item", "needs", "overtaken", "profile", "shelf", "turn", "writes_there")

    item: Item | None
    """Its place in the order while it waits; None when it does not."""
    needs: Needs
    overtaken: Overtaken
    profile: Profile
    shelf: Shelf | None
    writes_there: bool
    turn: int
    """When it became ready; those of one turn count as equally old."""

    @property
    def owner(self) -> Any:
        """Whose wait it is: an entry or a request."""
        raise NotImplementedError

    @property
    def arrival(self) -> int:
        """Its number, which no other waiter has."""
        assert self.item is not None
        return self.item[1]

    @property
    def estimate(self) -> float | None:
        """How long its task is thought to take, if that was said."""
        estimate: float | None = None if self.profile.is_request else self.owner.task.estimate
        return estimate

    def own_overtaken(self) -> Overtaken:
        """Its own record of that, to write into."""
        if self.overtaken is NEVER_OVERTAKEN:
            self.overtaken = Overtaken()
        return self.overtaken


class ProxyWaiter(Waiter):
    """A waiter on behalf of a request, or of a task that has waited before."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any, needs: Needs, profile: Profile, turn: int) -> None:
        self._owner = owner
        self.item = None
        self.needs = needs
        self.overtaken = NEVER_OVERTAKEN
        self.profile = profile
        self.shelf = None
        self.turn = turn
        self.writes_there = True

    @property
    def owner(self) -> Any:
        return self._owner

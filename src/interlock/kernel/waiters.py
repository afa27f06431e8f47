"""Waiters, what they need, and the grants that hold it.

A queue can be a million tasks long, so a waiter is small. What most waiters never need is in
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
"""A waiter in a heap: its rank, its arrival, itself. A waiter that is rekeyed gets a new one.

Arrivals are unique, so waiters themselves are never compared."""

Needs = tuple[tuple["Place", bool], ...]
"""Places, each with whether it is to be written."""

Amounts = tuple[tuple["Meter", int], ...]
"""Meters, each with how much of it is needed."""

_NOTHING: Mapping[Any, int] = MappingProxyType({})


class Grant:
    """Everything that one attempt, or something outside the run, holds."""

    # Few grants have more than places and a slot: the rest are class attributes until written.
    places: Needs = ()
    amounts: Mapping[Meter, int] = _NOTHING
    lent: Mapping[Meter, int] = _NOTHING
    """How much of its amounts its children use."""
    loans: tuple[tuple[Grant, Meter, int], ...] = ()
    """What it uses of the amounts of its ancestors: lender, meter, how much."""
    holds_slot = False
    zombie = False
    """It was told to stop and has not exited."""
    released = False

    def __init__(self, since: float) -> None:
        self.since = since

    @property
    def ends_at(self) -> float | None:
        """When it is expected to be released, if there is an estimate."""
        return None

    def lendable(self, meter: Meter) -> int:
        """Return how much of a meter this grant holds and has not lent out."""
        return self.amounts.get(meter, 0) - self.lent.get(meter, 0)

    def hold(self, meter: Meter, amount: int) -> None:
        """Add to what it holds."""
        self.amounts = {**self.amounts, meter: self.amounts.get(meter, 0) + amount}

    def lend(self, meter: Meter, amount: int) -> None:
        """Add to what its children use of what it holds; a negative amount takes away."""
        self.lent = {**self.lent, meter: self.lent.get(meter, 0) + amount}


class Traits(NamedTuple):
    """What the waiters of a profile have in common."""

    amounts: Amounts = ()
    kin: tuple[Grant, ...] = ()
    """Grants whose places they may share. For a request, its own grant comes first."""
    is_request: bool = False
    """They are requests in mid-flight of running attempts."""
    has_slot: bool = False
    """They need no slot: they hold one already, or another request brings it."""
    is_awaited: bool = False
    """A running attempt waits for them."""
    patterned: bool = False
    """There are patterns among their claims."""


class Profile:
    """Waiters with the same traits: if one of them lacks an amount, all of them do."""

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
        """Whether they pass due waiters and reservations: requests, and what those may wait for."""
        # Amounts are borrowed from ancestors only. A request asks for more than its attempt has.
        self.lenders = self.kin[1:] if self.is_request else self.kin
        self.count = 0
        self.lacks: Meter | None = None
        """The meter of which there was not enough; while it is set the profile is not listed."""
        self.free = Shelf(self, None)
        self.shelves: list[tuple[Item, int, Shelf]] = []
        """A heap of the shelves with a waiter that might be able to start."""
        self.listed: tuple[Item, int, Profile] | None = None
        """Its live entry in a ready heap of `Admission`; None while it is not listed."""

    def short(self, waiter: Waiter) -> Meter | None:
        """Return a meter of which there is not enough for this waiter; None if there is none."""
        for meter, amount in self.amounts:
            if not meter.fits(amount, self.lenders) or meter.is_reserved_against(waiter):
                return meter
        return None


class Overtaken:
    """How often a waiter has been overtaken."""

    __slots__ = ("for_capacity", "is_due", "last_overtaker", "last_taker", "times")

    def __init__(self) -> None:
        self.times = 0
        """By starts that conflict with it."""
        self.for_capacity = 0
        """By starts while it lacked only capacity."""
        self.last_overtaker = 0
        """The arrival of the start counted last, so that each counts once."""
        self.last_taker = 0
        """The same for capacity."""
        self.is_due = False
        """No younger waiter that conflicts with it may start first, unless it will end in time."""


NEVER_OVERTAKEN = Overtaken()
"""Shared by all waiters that have not been overtaken. Nothing is written into it."""


class Waiter:
    """One wait for claims: of a task that is ready, or of a running attempt in mid-flight."""

    __slots__ = ("item", "needs", "overtaken", "profile", "shelf", "turn", "writes_there")

    item: Item | None
    """Its position in the order while it waits; None when it does not."""
    needs: Needs
    overtaken: Overtaken
    profile: Profile
    shelf: Shelf | None
    writes_there: bool
    """Whether it is among the writers of its shelf."""
    turn: int
    """The turn in which it became ready. Waiters of one turn are equally old."""

    @property
    def owner(self) -> Any:
        """Return what waits: an entry or a request."""
        raise NotImplementedError

    @property
    def arrival(self) -> int:
        """Its number, which no other waiter has."""
        assert self.item is not None
        return self.item[1]

    @property
    def estimate(self) -> float | None:
        """Return how long its task is expected to take, if there is an estimate."""
        estimate: float | None = None if self.profile.is_request else self.owner.task.estimate
        return estimate

    def own_overtaken(self) -> Overtaken:
        """Return its own record of overtaking, to write into."""
        if self.overtaken is NEVER_OVERTAKEN:
            self.overtaken = Overtaken()
        return self.overtaken


class ProxyWaiter(Waiter):
    """A waiter on behalf of a request, an external hold, or a task that has waited before."""

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

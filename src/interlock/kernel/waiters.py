"""Those who wait for claims, and what they get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.kernel.places import Glob
from interlock.kernel.shelves import Shelf

if TYPE_CHECKING:
    from interlock.kernel.lines import Line
    from interlock.kernel.meters import Meter
    from interlock.kernel.places import Place

Key = tuple[float, float, float, int]
"""The order of starts, smallest first: minus priority, minus rank, minus claims, arrival."""

Needs = tuple[tuple["Place", bool], ...]
"""Places, each with whether it is to be written."""

Amounts = tuple[tuple["Meter", int], ...]


ProfileKey = tuple[Amounts, tuple["Grant", ...], bool, bool, bool]
"""Amounts, grants of kin (the own one first in mid-flight), in mid-flight, seated, needed or not.

Seated waiters hold a slot already; needed ones are what something that runs waits for."""


class Grant:
    """All that one attempt holds; `zombie` once it was told to stop, until it is gone."""

    __slots__ = (
        "amounts",
        "ends_at",
        "holds_slot",
        "lent",
        "loans",
        "owner",
        "places",
        "released",
        "since",
        "zombie",
    )

    def __init__(self, owner: Any, since: float, estimate: float | None) -> None:
        self.owner = owner
        self.since = since
        self.ends_at = None if estimate is None else since + estimate
        """When it is expected to be released, if its task has an estimate."""
        self.places: list[tuple[Place, bool]] = []
        self.amounts: dict[Meter, int] = {}
        self.lent: dict[Meter, int] = {}
        """What of the amounts its children use."""
        self.loans: list[tuple[Grant, Meter, int]] = []
        self.holds_slot = False
        self.zombie = False
        self.released = False

    def lendable(self, meter: Meter) -> int:
        """How much of a meter this grant holds and has not lent out."""
        return self.amounts.get(meter, 0) - self.lent.get(meter, 0)


class Profile:
    """Waiters that need the same amounts of the same meters: they lack capacity together."""

    __slots__ = (
        "amounts",
        "count",
        "exempt",
        "free",
        "key",
        "kin",
        "lacks",
        "lenders",
        "listed",
        "midflight",
        "seated",
        "shelves",
    )

    def __init__(self, key: ProfileKey) -> None:
        self.key = key
        self.amounts, self.kin, self.midflight, self.seated, needed = key
        self.exempt = self.midflight or bool(self.kin) or needed
        """Whether the waiters pass reservations: in mid-flight, and what such waits may be for."""
        # Grants whose places the waiters may share: their ancestors', and in mid-flight their own.
        # Amounts are shared only with ancestors: who asks for more in mid-flight wants more.
        self.lenders = self.kin[1:] if self.midflight else self.kin
        self.count = 0
        self.lacks: Meter | None = None
        """The meter that was found to be short."""
        self.free = Shelf(self, None)
        self.shelves: list[tuple[Key, int, Shelf]] = []
        """A heap of shelves with somebody on them who might be able to start."""
        self.listed: tuple[Key, int, Profile] | None = None

    def short(self, waiter: Waiter) -> Meter | None:
        """A meter of which there is not enough for this waiter."""
        for meter, amount in self.amounts:
            if not meter.fits(amount, self.lenders) or meter.is_kept_from(waiter):
                return meter
        return None


class Waiter:
    """One wait for claims: of a task that is ready, or of a running attempt in mid-flight."""

    __slots__ = (
        "alive",
        "closes",
        "key",
        "last_passer",
        "last_taker",
        "lines",
        "midflight",
        "needs",
        "overtaken",
        "overtaken_for_capacity",
        "owner",
        "patterned",
        "profile",
        "shelf",
        "turn",
        "writes_there",
    )

    def __init__(self, owner: Any, needs: Needs, profile: Profile, turn: int, key: Key) -> None:
        self.owner = owner
        self.needs = needs
        self.profile = profile
        self.turn = turn
        """When it became ready; those of one turn count as equally old."""
        self.key = key
        self.midflight = profile.midflight
        lines = [each.of(writes) for place, writes in needs for each in place.queues]
        self.lines: tuple[Line, ...] = tuple(dict.fromkeys(lines) if len(lines) > 1 else lines)
        """The lines in which it stands while it waits."""
        self.patterned = any(isinstance(place, Glob) for place, _ in needs)
        self.alive = True
        self.shelf: Shelf | None = None
        self.writes_there = True
        self.overtaken = 0
        """How many younger ones started past it."""
        self.overtaken_for_capacity = 0
        self.last_passer = 0
        self.last_taker = 0
        self.closes = False
        """Nobody younger may pass it any more, but for those who are out of its way in time."""

    @property
    def estimate(self) -> float | None:
        """How long its task is thought to take, if that was said."""
        return None if self.midflight else self.owner.task.estimate

    @property
    def exempt(self) -> bool:
        """Whether it passes reservations."""
        return self.profile.exempt

"""Those who wait for claims, and what they get."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.kernel.lines import Line
    from interlock.kernel.meters import Meter
    from interlock.kernel.places import Place, Point

Key = tuple[float, float, float, int]
"""The order of starts, smallest first: minus priority, minus rank, minus load, arrival."""

Needs = tuple[tuple["Place", bool], ...]
"""Places, each with whether it is to be written."""

Amounts = tuple[tuple["Meter", int], ...]


class Grant:
    """All that one attempt holds; `zombie` once it was told to stop, until it is gone."""

    __slots__ = ("amounts", "holds_slot", "lent", "loans", "owner", "places", "released", "zombie")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
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

    __slots__ = ("amounts", "count", "key", "kin", "listed", "ready", "seated")

    def __init__(self, key: object, amounts: Amounts, kin: tuple[Grant, ...], seated: bool) -> None:
        self.key = key
        self.amounts = amounts
        self.kin = kin
        self.seated = seated
        """Its waiters hold a slot already."""
        """Grants of the waiters' ancestors, whose claims they may share."""
        self.count = 0
        self.ready: list[tuple[Key, Waiter]] = []
        """A heap of waiters whose places were free when last looked at."""
        self.listed: tuple[Key, int, Profile] | None = None

    def best(self) -> Waiter | None:
        """The first of the ready ones."""
        return first(self.ready)

    def short(self, waiter: Waiter) -> Meter | None:
        """A meter of which there is not enough for this waiter."""
        for meter, amount in self.amounts:
            if not meter.fits(amount, self.kin):
                return meter
            ahead = meter.reserved
            if ahead is not None and ahead is not waiter and not meter.zombies and not self.kin:
                return meter
        return None


class Shelf:
    """Waiters of one profile that look at one point, readers and writers apart."""

    __slots__ = ("readers", "writers")

    def __init__(self) -> None:
        self.readers: list[tuple[Key, Waiter]] = []
        self.writers: list[tuple[Key, Waiter]] = []


class Waiter:
    """One wait for claims: of a task that is ready, or of a running attempt in mid-flight."""

    __slots__ = (
        "alive",
        "carry",
        "due",
        "key",
        "lines",
        "midflight",
        "needs",
        "owner",
        "profile",
        "suspended",
        "turn",
    )

    def __init__(
        self, owner: Any, needs: Needs, profile: Profile, turn: int, key: Key, midflight: bool
    ) -> None:
        self.owner = owner
        self.needs = needs
        self.profile = profile
        self.turn = turn
        """When it became ready; those of one turn count as equally old."""
        self.key = key
        self.midflight = midflight
        lines = [each.of(writes) for place, writes in needs for each in place.queues]
        self.lines: tuple[Line, ...] = tuple(dict.fromkeys(lines) if len(lines) > 1 else lines)
        """The lines in which it stands while it waits."""
        self.alive = True
        self.carry: Point | None = None
        """The point in whose place this waiter was woken: it wakes the next one there."""
        self.due = False
        """Overtaken often enough: its claims are reserved against younger ones."""
        self.suspended = False
        """Due, but blocked by a zombie, so that it holds nobody back."""

    @property
    def exempt(self) -> bool:
        """Whether it passes reservations: waits in mid-flight, and children of what runs."""
        return self.midflight or bool(self.profile.kin)


def first(heap: list[tuple[Key, Waiter]]) -> Waiter | None:
    """The best waiter of a heap, past those that left it or were given another key."""
    while heap:
        key, waiter = heap[0]
        if waiter.alive and waiter.key is key:
            return waiter
        heappop(heap)
    return None

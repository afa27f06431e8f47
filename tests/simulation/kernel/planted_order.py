"""Planted bugs: which waiters are woken, and in which order."""

from __future__ import annotations

from typing import Any

from interlock.kernel import overtaking
from interlock.kernel.admission import Admission
from interlock.kernel.table import Table
from tests.simulation.planting import Bugs

BUGS = Bugs()

# Waking


@BUGS.plant("a release wakes nobody", Admission, "_released")
def _(original: Any) -> Any:
    return lambda self, point: None


@BUGS.plant("a release wakes only one kind of waiter", Admission, "_released")
def _(original: Any) -> Any:
    def released(self: Any, point: Any) -> None:
        if point.shelves:
            self._list_shelf(next(iter(point.shelves.values())))

    return released


@BUGS.plant("amounts that come back wake nobody", Admission, "reopen")
def _(original: Any) -> Any:
    return lambda self, meter: original(self, meter) if meter.window is not None else None


@BUGS.plant("a task with a new priority is lost", Admission, "_rekey")
def _(original: Any) -> Any:
    return lambda self, waiter, rank: setattr(waiter, "item", (rank, waiter.arrival, waiter))


# Order


@BUGS.plant("reservations are ignored", Table, "_would_overtake_due")
def _(original: Any) -> Any:
    return lambda self, point, place, writes, waiter: False


@BUGS.plant("nobody ever reserves", Admission, "_make_due")
def _(original: Any) -> Any:
    return lambda self, waiter: None


@BUGS.plant("one who is blocked by a zombie holds everybody back", Admission, "_zombie_blocks")
def _(original: Any) -> Any:
    return lambda self, waiter: False


@BUGS.plant("a withdrawn reservation keeps standing", Admission, "withdraw")
def _(original: Any) -> Any:
    def withdraw(self: Any, waiter: Any) -> None:
        self.due_waiters.pop(waiter, None)
        original(self, waiter)

    return withdraw


@BUGS.plant("those whom a reservation held back are forgotten", Admission, "_unpark")
def _(original: Any) -> Any:
    return lambda self, shelf: None


@BUGS.plant(
    "a new priority takes the turn of one who was passed too often", Admission, "prioritize"
)
def _(original: Any) -> Any:
    return lambda self, waiter, priority: self._rekey(waiter, (-priority, *waiter.item[0][1:]))


@BUGS.plant("patterns are passed by whoever starts near them", overtaking, "conflicts_at")
def _(original: Any) -> Any:
    return lambda point, waiter, place, writes: True

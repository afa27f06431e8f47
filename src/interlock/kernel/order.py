"""The order of starts among those who could start.

Priority first. Then wide claims: whoever conflicts with more than half of all unfinished work so
seldom finds nothing in its way that it goes first when it does. Then whoever has the longest chain
of work behind it, with half of its own; then whoever claims the busiest resource; then whoever
came first. All of it is fixed when a task becomes ready. docs/benchmarks.md has the measurements.
"""

from __future__ import annotations

from interlock.kernel.meters import ALL
from interlock.kernel.records import Entry
from interlock.kernel.waiters import Key

WIDE = float("inf")


def start_key(entry: Entry, unfinished: int, arrival: int) -> Key:
    """Where a task stands in the order, smallest first."""
    # Half of its own work: what stands behind a task counts fully, because only its end frees
    # it, but among tasks with nothing behind them length matters less than that.
    rank = entry.tail - entry.estimate / 2
    load = 0.0
    for place, writes in entry.needs:
        if place.load > load:
            load = place.load
        if unfinished > 2 and 2 * place.crowd(writes) > unfinished:
            rank = WIDE
    for meter, _ in entry.amounts:
        if meter.load > load:
            load = meter.load
    return (-entry.priority, -rank, -load, arrival)


def add_load(entry: Entry, by: int) -> None:
    """Count a task's work where it will be done (by = 1), or no longer (by = -1)."""
    work = entry.estimate * by
    for place, writes in entry.needs:
        place.count(writes, by)
        if writes:
            place.load += work
    for meter, amount in entry.amounts:
        share = 1.0 if amount == ALL or not meter.capacity else amount / meter.capacity
        meter.load += work * share

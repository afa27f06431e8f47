"""The order of starts among those who could start.

Priority first. Then wide claims: whoever conflicts with more than half of all unfinished work so
seldom finds nothing in its way that it goes first when it does. Then whoever has the longest chain
of work behind it, with half of its own; then whoever claims the most; then whoever came first.
All of it is fixed when a task becomes ready. docs/architecture.md has the reasons.

First come, first served knows priority and arrival alone.
"""

from __future__ import annotations

from interlock.kernel.records import DEFAULT_ESTIMATE, Entry
from interlock.kernel.waiters import Needs, Rank

WIDE = float("inf")


def start_rank(entry: Entry, unfinished: int) -> Rank:
    """Where a task stands in the order, smallest first; who came first decides among equals."""
    task, extras = entry.task, entry.extras
    guess = DEFAULT_ESTIMATE if task.estimate is None else task.estimate
    # Half of its own work: what stands behind a task counts fully, because only its end frees
    # it, but among tasks with nothing behind them length matters less than that.
    rank = (guess if extras.tail is None else extras.tail) - guess / 2
    priority = task.priority if extras.priority is None else extras.priority
    claimed = len(entry.profile.amounts)
    for place, writes in entry.needs:
        counted = place.counted_at[0]
        claimed += 2 if writes else 1
        # How many unfinished claims conflict with this one, at least.
        if unfinished > 2 and 2 * (counted.users if writes else counted.writers) > unfinished:
            rank = WIDE
    return (-priority, -rank, -claimed)


def first_come_rank(entry: Entry, _unfinished: int) -> Rank:
    """By priority; among equals whoever became ready first, whatever it claims."""
    priority = entry.extras.priority
    return (-(entry.task.priority if priority is None else priority), 0, 0)


def count_claims(needs: Needs, by: int) -> None:
    """Count an unfinished task at the places it claims (by = 1), or no longer (by = -1)."""
    for place, writes in needs:
        for each in place.counted_at:
            each.users += by
            if writes:
                each.writers += by

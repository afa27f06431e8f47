"""The order of starts among those who could start.

Priority first. Then wide claims: whoever conflicts with more than half of all unfinished work so
seldom finds nothing in its way that it goes first when it does. Then whoever has the longest chain
of work behind it, with half of its own; then whoever claims the most; then whoever came first.
All of it is fixed when a task becomes ready. docs/architecture.md has the reasons.
"""

from __future__ import annotations

from interlock.kernel.records import Entry
from interlock.kernel.waiters import Needs, Rank

WIDE = float("inf")


def start_rank(entry: Entry, unfinished: int) -> Rank:
    """Where a task stands in the order, smallest first; who came first decides among equals."""
    # Half of its own work: what stands behind a task counts fully, because only its end frees
    # it, but among tasks with nothing behind them length matters less than that.
    rank = entry.tail - entry.guess / 2
    claimed = len(entry.amounts)
    for place, writes in entry.needs:
        claimed += 2 if writes else 1
        if unfinished > 2 and 2 * place.crowd(writes) > unfinished:
            rank = WIDE
    return (-entry.priority, -rank, -claimed)


def count_claims(needs: Needs, by: int) -> None:
    """Count an unfinished task at the places it claims (by = 1), or no longer (by = -1)."""
    for place, writes in needs:
        place.count(writes, by)

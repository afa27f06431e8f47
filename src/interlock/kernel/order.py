"""The order among the waiters that could start.

1. Priority.
2. Wide claims. A task that conflicts with more than half of all unfinished tasks seldom finds
   nothing in its way, so it goes first when it does.
3. The longest chain of estimates that begins with the task, less half of its own estimate.
4. The size of its claims: a write counts 2, a read or an amount 1.
5. Age.

All of it is fixed when a task becomes ready, so that heaps stay heaps. docs/decisions.md has the
reasons, docs/benchmarks.md (P7) what the order is worth. Every number here is pinned by a test in
`tests/unit/kernel/test_order.py`.

*First come, first served* knows priority and age alone.
"""

from __future__ import annotations

from interlock.kernel.records import DEFAULT_ESTIMATE, Entry
from interlock.kernel.waiters import Needs, Rank

WIDE = float("inf")
"""The rank of a task with a wide claim, before every chain."""


def start_rank(entry: Entry, unfinished: int) -> Rank:
    """Return the position of a task in the order, smallest first. Age decides among equals."""
    task, extras = entry.task, entry.extras
    guess = DEFAULT_ESTIMATE if task.estimate is None else task.estimate
    # What comes behind a task counts in full, because only its end frees it. Its own length counts
    # half: among tasks with nothing behind them, longest first is better, but not by that much.
    rank = (guess if extras.tail is None else extras.tail) - guess / 2
    priority = task.priority if extras.priority is None else extras.priority
    claimed = len(entry.profile.amounts)
    for place, writes in entry.needs:
        counted = place.counted_at[0]
        claimed += 2 if writes else 1
        # A lower bound on the unfinished tasks that conflict: those counted at this very place.
        # With one or two tasks in all, "more than half" would say nothing.
        if unfinished > 2 and 2 * (counted.users if writes else counted.writers) > unfinished:
            rank = WIDE
    return (-priority, -rank, -claimed)


def first_come_rank(entry: Entry, _unfinished: int) -> Rank:
    """Return the position by priority alone. Age decides among equals, whatever they claim."""
    priority = entry.extras.priority
    return (-(entry.task.priority if priority is None else priority), 0, 0)


def count_claims(needs: Needs, by: int) -> None:
    """Count an unfinished task at the places it claims (by = 1), or stop counting it (by = -1)."""
    for place, writes in needs:
        for each in place.counted_at:
            each.users += by
            if writes:
                each.writers += by

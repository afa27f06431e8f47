"""The kernel as a target of the simulation: its stories are worlds."""

from __future__ import annotations

from tests.simulation.kernel.story import WorldStory
from tests.simulation.kernel.storyteller import make_story
from tests.simulation.kernel.world import JudgedWorld, World
from tests.simulation.target import Target

EXPECTED = (
    "started", "zombie", "zombie without a slot", "ended before gone", "stale report",
    "report of a zombie", "retry after a failure", "retry after a timeout", "overtaken",
    "reservation", "children at depth 1", "children at depth 2", "children at depth 3",
    "resumed at once: extend", "resumed later: extend", "denied: extend", "denied: tasks",
    "resumed later: take", "resumed later: ask", "resumed later: tasks", "settled succeeded",
    "settled failed", "settled timed_out", "settled cancelled", "settled skipped",
    "settled conflicted", "Drain", "Shutdown", "Pause", "Unpause", "SetCapacity", "HoldRate",
    "Prioritize", "CancelGroup", "Cancel", "Used", "Reports", "lost without a word",
    "ImpossibleClaim", "bad input: DuplicateId", "bad input: InvalidOption", "extension refused",
    "2 requests at once", "3 requests at once", "resumed without a slot, others being open",
    "group joined later", "group deadline replaced", "capacity of nothing",
    "capacity back from nothing", "no slots", "case folded", "passed for a slot",
    "waits for a stranger", "waits for its own kind", "needed in a drain", "Occupy", "Vacate",
    "occupied although it was held", "withdrawn: extend", "withdrawn: take", "withdrawn: tasks",
    "withdrawn: ask", "withdrawn: slot", "withdrawn: too late", "resumed at once: slot",
    "resumed later: slot", "throttled",
)  # fmt: skip


def play(story: WorldStory) -> JudgedWorld:
    """Play the world of a story; the oracle judges every step."""
    return World(story).run()


KERNEL = Target(
    name="kernel",
    stories="worlds",
    steps="calls of handle(), each judged",
    make_story=make_story,
    play=play,
    expected=EXPECTED,
    max_shrinks=600,
)

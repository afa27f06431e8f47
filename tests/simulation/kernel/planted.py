"""Bugs planted on purpose: a judge that misses one of them is not good enough (S20).

Each is a small change inside the real kernel, of the kind that somebody could really make. Its
name says what goes wrong.
"""

from __future__ import annotations

from tests.simulation.kernel import (
    planted_claims,
    planted_lifecycle,
    planted_order,
    planted_requests,
)
from tests.simulation.kernel.storyteller import make_script
from tests.simulation.kernel.world import World
from tests.simulation.planting import BUGS

__all__ = ["BUGS", "PLACES", "first_seed"]

PLACES = (planted_claims, planted_order, planted_requests, planted_lifecycle)
"""Where the bugs are written down; to import them is to register them."""
_CLUMSY = (AttributeError, TypeError, NameError, UnboundLocalError)
"""What a planted bug that no longer fits the kernel would raise; that would prove nothing."""


def first_seed(name: str, seeds: range) -> int | None:
    """The first of these seeds in whose world the planted bug, and nothing else, is noticed."""
    for seed in seeds:
        script = make_script(seed)
        with BUGS[name]():
            found = World(script).run().violation
        if found is not None and isinstance(found.__cause__, _CLUMSY):
            raise found.__cause__
        if found is not None and World(script).run().violation is None:
            return seed
    return None

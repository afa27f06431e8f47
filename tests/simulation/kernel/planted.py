"""Bugs planted in the kernel: an oracle that misses one of them is not good enough (S20).

Each is a small change inside the real kernel, such as a contributor could make by mistake. Its name
says what goes wrong.
"""

from __future__ import annotations

from tests.simulation.kernel import (
    planted_claims,
    planted_lifecycle,
    planted_order,
    planted_requests,
)
from tests.simulation.planting import Bugs

BUGS = Bugs(
    {
        **planted_claims.BUGS,
        **planted_order.BUGS,
        **planted_requests.BUGS,
        **planted_lifecycle.BUGS,
    }
)

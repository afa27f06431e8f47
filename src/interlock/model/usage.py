"""What an agent has used: tokens and money."""

from __future__ import annotations

from typing import NamedTuple


class Usage(NamedTuple):
    """Tokens read and written by a model, and what they cost."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both."""
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.cost + other.cost,
        )


NO_USAGE = Usage()

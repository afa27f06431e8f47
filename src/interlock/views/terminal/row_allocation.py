"""How the rows of a terminal are shared out among what wants to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class RowDemand(NamedTuple):
    """How many rows something would fill; with how few it starts, and when others come first."""

    rows: int
    least: int
    enough: int


def allocate_rows(room: int, wishes: Sequence[RowDemand]) -> list[int]:
    """Rows for each, in the order of their worth: first the least, then enough, then all."""
    given = [0] * len(wishes)
    for bounds in (
        [wish.least for wish in wishes],
        [wish.enough for wish in wishes],
        [wish.rows for wish in wishes],
    ):
        for index, (wish, bound) in enumerate(zip(wishes, bounds, strict=True)):
            more = max(0, min(bound, wish.rows) - given[index])
            given[index] += min(more, room)
            room -= min(more, room)
    return given

"""Divides the rows of a terminal among the parts of the live view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class RowDemand(NamedTuple):
    """How many rows a part would fill, the minimum, and a number after which others come first."""

    rows: int
    least: int
    enough: int


def allocate_rows(room: int, demands: Sequence[RowDemand]) -> list[int]:
    """Rows for each part, most important first: the minimum for all, then enough, then the rest."""
    given = [0] * len(demands)
    for bounds in (
        [demand.least for demand in demands],
        [demand.enough for demand in demands],
        [demand.rows for demand in demands],
    ):
        for index, (demand, bound) in enumerate(zip(demands, bounds, strict=True)):
            more = max(0, min(bound, demand.rows) - given[index])
            given[index] += min(more, room)
            room -= min(more, room)
    return given

"""One measured figure, with the target it is held against."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """`value` in `unit`; smaller is better. Without a target it is there for comparison."""

    name: str
    value: float
    target: float | None = None
    unit: str = ""

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "ok" if self.value <= self.target else "miss"


def mean(values: list[float]) -> float:
    return sum(values) / len(values)

"""How long agents took: the estimate for tasks that have none of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

KEPT = 10_000
"""How many pairs of agent and label are kept, the latest ones: a label may be any text."""


class Estimate(NamedTuple):
    """How long the successful attempts of an agent took, in seconds."""

    n: int
    mean: float
    spread: float
    """The standard deviation; 0 for a single attempt."""


def estimate(n: int, mean: float, m2: float) -> Estimate:
    """The estimate from what the table keeps: count, mean, and sum of squared deviations."""
    return Estimate(n, mean, math.sqrt(max(0.0, m2) / (n - 1)) if n > 1 else 0.0)


def labels_of(labels: Mapping[str, str]) -> list[str]:
    """The labels under which an attempt counts: the empty one, for all attempts, and its own."""
    return ["", *(f"{name}={value}" for name, value in labels.items())]


class Samples:
    """Durations that go into the table together, added one at a time (Welford)."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int, float, float, float]] = {}

    def add(self, agent: str, label: str, duration: float, at: float) -> None:
        n, mean, m2, _ = self._found.get((agent, label), (0, 0.0, 0.0, 0.0))
        n += 1
        delta = duration - mean
        mean += delta / n
        self._found[agent, label] = (n, mean, m2 + delta * (duration - mean), at)

    def __iter__(self) -> Iterator[tuple[str, str, int, float, float, float]]:
        for (agent, label), sample in self._found.items():
            yield agent, label, *sample

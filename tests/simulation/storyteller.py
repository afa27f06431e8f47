"""Makes stories from seeds: the part that kernel and runtime share.

The universe is small, so that conflicts are frequent. A story has some features and not others:
rare things then meet each other more often. Times are multiples of 1/8: sums of them are exact, and
ties, where many bugs live, are frequent. The order of the draws is part of a story: a draw that is
added in the middle changes the stories of all seeds, so new features draw from dice of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TypeVar

Scene = TypeVar("Scene")

FILES = ("src/a.py", "src/b.py", "src/api/c.py", "docs/x.md", "docs/y.md")
PAUSES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)


class Storyteller:
    """Draws what a story consists of."""

    def __init__(self, seed: int, dice: Random, features: Sequence[str], share: float) -> None:
        self.seed = seed
        self.dice = dice
        self.has = {feature: dice.random() < share for feature in features}
        """Which features this story has."""
        self.ids: list[str] = []
        """The tasks that have been submitted so far, in order, without children."""
        self.count = 0
        """How many tasks are to be submitted."""

    def sometimes(self, feature: str, chance: float) -> bool:
        """Whether a feature occurs here; nothing is drawn for a feature that the story lacks."""
        return self.has[feature] and self.dice.random() < chance

    def pause(self) -> float:
        return self.dice.choice(PAUSES)

    def few_of(self, ids: Sequence[str]) -> tuple[str, ...]:
        """One of them, or two."""
        return tuple(self.dice.sample(ids, min(len(ids), self.dice.choice((1, 1, 2)))))

    def timeline(self, scenes: Callable[[float], Iterable[Scene]]) -> tuple[list[Scene], float]:
        """The scenes from time 0 until all tasks have been submitted, and the time of the last."""
        at, found = 0.0, list[Scene]()
        while len(self.ids) < self.count:
            found += scenes(at)
            if self.dice.random() < 0.7:
                at += self.pause()
        return found, at

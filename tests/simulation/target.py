"""What the engine asks of a target: the kernel in its worlds, or the Runtime in its runs.

A target makes a story from a seed, plays it, and judges how it went. The rest (many seeds,
shrinking, narration, planted bugs) is the same for all targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Story = TypeVar("Story")
Story_co = TypeVar("Story_co", covariant=True)


class Judged(Protocol[Story_co]):
    """A story that has been played and judged."""

    @property
    def story(self) -> Story_co: ...

    @property
    def violations(self) -> list[str]:
        """The rules that were broken, most important first."""

    @property
    def steps(self) -> int:
        """How many steps were judged."""

    @property
    def length(self) -> int:
        """How long the narration is; the shrinker never makes it longer."""

    @property
    def seen(self) -> Counter[str]:
        """How often each feature was exercised."""

    def heading(self) -> list[str]:
        """The story and its limits, in lines."""

    def lines(self) -> list[str]:
        """What happened, in lines."""


@dataclass(frozen=True)
class Target(Generic[Story]):
    """Something to simulate."""

    name: str
    stories: str
    """What its stories are called: worlds, or runs."""
    steps: str
    """What its steps are called."""
    make_story: Callable[[int], Story]
    play: Callable[[Story], Judged[Story]]
    """Play a story from its begin to its end, and judge it."""
    expected: tuple[str, ...]
    """A judge that never saw one of these in a thousand stories has not been exercised."""
    max_shrinks: int
    """Stories tried when one is shrunk; one that is nearly the shortest is good enough."""

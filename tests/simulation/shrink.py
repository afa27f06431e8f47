"""The shortest story that still breaks the same rule: delta debugging over plain data.

A story is nested records (named tuples), tuples, numbers and tasks. Smaller stories are found
without knowing what they mean: a sequence loses some of its elements, in ever smaller runs, and a
number goes back to its default. Each candidate is played; it is kept if it breaks the same rule
and its narration is not longer. Every candidate is simpler than what it was made from, so the
search ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from interlock.model.task import Task
from tests.simulation.target import Judged, Target

Story = TypeVar("Story")

NEVER_EMPTY = frozenset({"plans", "children", "attempts", "courses", "claims"})
"""Fields of records that keep at least one element: without it they would mean something else."""


def shrink(story: Story, target: Target[Story]) -> Judged[Story]:
    """Play the shortest story found that breaks the same rule as this one."""
    best = target.play(story)
    plays, progress = 0, bool(best.violations)
    while progress:
        progress = False
        for candidate in simpler(best.story):
            if plays == target.max_shrinks:
                return best
            plays += 1
            judged = target.play(candidate)
            if moral(judged) == moral(best) and judged.length <= best.length:
                best, progress = judged, True
                break
    return best


def moral(judged: Judged[Any]) -> str:
    """What a violation is about, without the names and numbers of this very story."""
    first = judged.violations[0] if judged.violations else ""
    plain = re.sub(r"\bt\d[^ ,:)]*|[\d.]+", "", first)
    return " ".join(plain.split()[:6])


def simpler(value: Any, *, keep_one: bool = False) -> Iterator[Any]:
    """Simpler values of the same shape, the much simpler ones first."""
    if isinstance(value, Task):
        for name in ("claims", "after"):
            for fewer in _without_runs(getattr(value, name)):
                yield value.replace(**{name: fewer})
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from _simpler_record(value)
    elif isinstance(value, tuple):
        yield from (fewer for fewer in _without_runs(value) if fewer or not keep_one)
        for number, element in enumerate(value):
            for less in simpler(element):
                yield (*value[:number], less, *value[number + 1 :])


def _simpler_record(record: Any) -> Iterator[Any]:
    defaults = record._field_defaults
    for name, value in zip(record._fields, record, strict=True):
        for less in simpler(value, keep_one=name in NEVER_EMPTY):
            yield record._replace(**{name: less})
        # Texts say which task or kind is meant: there is no simpler one.
        if isinstance(value, int | float) and value != defaults.get(name, value):
            yield record._replace(**{name: defaults[name]})


def _without_runs(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The items without a run of them, long runs first, the late ones first."""
    length = len(items)
    while length >= 1:
        for start in range(len(items) - length, -1, -length):
            yield items[:start] + items[start + length :]
        length //= 2

"""Plants a bug for the length of a `with` block, and looks for the first seed that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.simulation.target import Target

Make = Callable[[Any], Any]
Bug = Callable[[], AbstractContextManager[None]]
_MISFITS = ("AttributeError", "TypeError", "NameError", "UnboundLocalError")
"""What a planted bug raises that no longer fits the code. Finding it would prove nothing."""


@contextmanager
def _changed(owner: Any, name: str, make: Make) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


class Bugs(dict[str, Bug]):
    """Planted bugs by the sentence that says what goes wrong."""

    def plant(self, sentence: str, owner: Any, name: str) -> Callable[[Make], Make]:
        """Register a bug: the decorated function makes the wrong method out of the right one."""
        assert hasattr(owner, name), f"{owner} has no {name} in which to plant a bug"

        def register(make: Make) -> Make:
            self[sentence] = lambda: _changed(owner, name, make)
            return make

        return register


def first_seed(target: Target[Any], bug: Bug, seeds: Iterable[int]) -> int | None:
    """The first of these seeds in whose story the judge finds the bug, and nothing without it."""
    for seed in seeds:
        story = target.make_story(seed)
        with bug():
            found = target.play(story).violations
        misfits = [text for text in found if any(each in text for each in _MISFITS)]
        assert not misfits, f"the bug no longer fits the code: {misfits[0]}"
        if found and not target.play(story).violations:
            return seed
    return None

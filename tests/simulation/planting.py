"""How a bug is planted for the length of a `with` block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Make = Callable[[Any], Any]
Bugs = dict[str, Callable[[], AbstractContextManager[None]]]
BUGS: Bugs = {}
"""Those of the kernel."""


@contextmanager
def _changed(owner: Any, name: str, make: Make) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def plant(sentence: str, owner: Any, name: str, bugs: Bugs = BUGS) -> Callable[[Make], Make]:
    """Register a bug: the decorated function makes the wrong method out of the right one."""
    assert hasattr(owner, name), f"{owner} has no {name} in which to plant a bug"

    def register(make: Make) -> Make:
        bugs[sentence] = lambda: _changed(owner, name, make)
        return make

    return register

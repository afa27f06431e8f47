"""What an encoder gets to see: the walk over a value that turns it into a tree of JSON.

A protocol, so that the encoders of each family of types need not import the codec that uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from interlock.model.redaction import Redaction


class Walk(Protocol):
    """One value on its way to JSON."""

    redaction: Redaction
    lenient: bool
    """Whether a stand-in is written for what cannot be stored; otherwise that is an error."""

    def tree(self, value: Any) -> Any:
        """The value in terms of what JSON has."""

    def items(self, values: Iterable[Any]) -> list[Any]:
        """The tree of each of several values."""

    def fields(self, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """The tree of each of several named values."""

    def whole(self, value: Any, what: str) -> Any:
        """The tree of a value if all of it can be stored; otherwise that of a stand-in."""

    def refused(self, value: Any, problem: str = "") -> Any:
        """The stand-in for a value that cannot be stored, if the walk is lenient."""


Encoder = Callable[[Walk, Any], Any]

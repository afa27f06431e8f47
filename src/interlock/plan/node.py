"""A YAML file as a tree in which every node knows its line and column.

Scalars keep the text as it was written; what it means depends on where it stands. So `no` is a
country where a name is expected, and `1.10` a version. Lines and columns count from 1.
"""

from __future__ import annotations

from typing import TypeAlias


class ScalarNode:
    """A single value as it was written. `plain`: without quotes, so it may be a number."""

    __slots__ = ("column", "line", "plain", "value")

    def __init__(self, value: str, plain: bool = True, line: int = 0, column: int = 0) -> None:
        self.value = value
        self.plain = plain
        self.line = line
        self.column = column

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was written, or `null` or `~`."""
        return self.plain and self.value in ("", "~", "null", "Null", "NULL")


class ListNode:
    """A list. `size` counts its nodes with aliases expanded, `height` its levels."""

    __slots__ = ("column", "has_holes", "height", "items", "line", "size")

    def __init__(self, line: int = 0, column: int = 0) -> None:
        self.items: list[Node] = []
        self.line = line
        self.column = column
        self.size = 1
        self.height = 1
        self.has_holes = False
        """Whether `{{` is somewhere in it."""


class MappingNode:
    """A mapping: each key with its node and the node of its value."""

    __slots__ = ("column", "entries", "has_holes", "height", "line", "size", "unreadable")

    def __init__(self, line: int = 0, column: int = 0) -> None:
        self.entries: dict[str, tuple[ScalarNode, Node]] = {}
        self.line = line
        self.column = column
        self.size = 1
        self.height = 1
        self.has_holes = False
        self.unreadable = False
        """Whether it was meant as something else, which has been reported already."""

    def get(self, name: str) -> Node | None:
        """Return the value of a key, if it is there."""
        found = self.entries.get(name)
        return None if found is None else found[1]


Node: TypeAlias = ScalarNode | ListNode | MappingNode

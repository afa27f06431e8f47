"""Kinds of values that are made of others: lists, mappings, and records with known keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.errors import InvalidOption
from interlock.model.load import Auto
from interlock.plan.node import ListNode, MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.scalar_kinds import WHOLE, WRONG, IntegerKind, Schema, ValueKind, wrong


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A key of a record: the kind of its value, what it means, and what other tools call it."""

    kind: ValueKind
    says: str
    aka: tuple[str, ...] = ()
    later: str = ""
    """The feature it needs, if that does not exist yet."""


class RecordValues:
    """What was read of a record: the valid values, and where everything is."""

    __slots__ = ("field", "node", "values")

    def __init__(self, node: MappingNode, field: str) -> None:
        self.node = node
        self.field = field
        self.values: dict[str, Any] = {}

    @property
    def is_right(self) -> bool:
        """Whether all of its keys are valid."""
        return len(self.values) == len(self.node.entries)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a key; the default if it is missing or invalid."""
        return self.values.get(name, default)

    def says(self, name: str) -> bool:
        """Whether the key is there, valid or not."""
        return name in self.node.entries

    def at(self, name: str) -> Node:
        """Return the node of a value; that of the whole record if the key is missing."""
        found = self.node.entries.get(name)
        return self.node if found is None else found[1]

    def key_at(self, name: str) -> Node:
        """Return the node of the key itself."""
        return self.node.entries[name][0]

    def path(self, name: str) -> str:
        """Return the full name of a key, for messages: `tasks.api.writes`."""
        return f"{self.field}.{name}" if self.field else name

    def items_at(self, name: str) -> Iterator[Node]:
        """Yield the nodes of the items of a list. A single value counts as a list of one."""
        node = self.at(name)
        yield from node.items if isinstance(node, ListNode) else [node]


class RecordKind:
    """A mapping with known keys. At the top level also `x-...`, for anchors and notes."""

    def __init__(
        self,
        keys: Mapping[str, KeySpec],
        what: str,
        open: bool = False,
        instead: Mapping[str, str] | None = None,
    ) -> None:
        self.keys = keys
        self.what = what
        few = ", ".join([name for name, key in keys.items() if not key.later][:3])
        self.noun = what
        self.hint = f"use a mapping with keys such as {few}"
        self._open = open
        self._instead = instead or {}
        """Messages for keys that belong elsewhere."""

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if node.__class__ is not MappingNode:
            return wrong(node, field, problems, self.noun, self.hint)
        if node.unreadable:
            return WRONG
        found = RecordValues(node, field)
        values, keys = found.values, self.keys
        for name, (at, value) in node.entries.items():
            key = keys.get(name)
            if key is None or key.later:
                self._refuse(name, at, field, problems)
                continue
            read = key.kind.read(value, f"{field}.{name}" if field else name, problems)
            if read is not WRONG:
                values[name] = read
        return found

    def _refuse(self, name: str, at: ScalarNode, field: str, problems: Problems) -> None:
        if self._open and name.startswith("x-"):
            return
        path = f"{field}.{name}" if field else name
        key = self.keys.get(name)
        if key is not None:
            problems.add(at, path, f"it needs {key.later}, which do not exist yet; leave it out")
            return
        if name in self._instead:
            problems.add(at, path, self._instead[name])
            return
        there = [each for each, key in self.keys.items() if not key.later]
        for each, key in self.keys.items():
            if name.lower() in key.aka:
                problems.add(at, path, f"{self.what} has no key {name!r}", each)
                return
        problems.unknown(at, path, name, f"{self.what} has no key {name!r}", there)

    def schema(self) -> Schema:
        properties = {
            name: {"description": key.says, **key.kind.schema()}
            for name, key in self.keys.items()
            if not key.later
        }
        found = {"type": "object", "additionalProperties": False, "properties": properties}
        return {**found, "patternProperties": {"^x-": {}}} if self._open else found


class ListKind:
    """A list, or one value alone; read as a tuple."""

    def __init__(self, kind: ValueKind, *, alone: bool = True) -> None:
        self._kind = kind
        self._alone = alone
        self.noun = kind.noun if alone else "a list"
        self.hint = f"{kind.hint}, or a list: [a, b]" if alone else "use a list: [a, b]"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, ListNode):
            if not self._alone or isinstance(node, MappingNode):
                return wrong(node, field, problems, self.noun, self.hint)
            node_read = self._kind.read(node, field, problems)
            return WRONG if node_read is WRONG else (node_read,)
        read = [self._kind.read(each, field, problems) for each in node.items]
        return WRONG if WRONG in read else tuple(read)

    def schema(self) -> Schema:
        one = self._kind.schema()
        listed = {"type": "array", "items": one}
        return {"anyOf": [one, listed]} if self._alone else listed


class MappingKind:
    """A mapping whose keys are names that the user gives."""

    def __init__(self, kind: ValueKind, what: str, form: str = r"\S(?:.*\S)?") -> None:
        self._kind = kind
        self._form = re.compile(form)
        self.noun = f"a mapping of {what}"
        self.hint = "use {name: ...}"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, MappingNode):
            return wrong(node, field, problems, self.noun, self.hint)
        if node.unreadable:
            return WRONG
        found: dict[str, Any] = {}
        for name, (at, value) in node.entries.items():
            if self._form.fullmatch(name) is None:
                problems.add(
                    at, field, f"{name!r} is not a valid name; use letters, digits, _, - and ."
                )
                continue
            read = self._kind.read(value, f"{field}.{name}", problems)
            if read is not WRONG:
                found[name] = read
        return found

    def schema(self) -> Schema:
        form = f"^(?:{self._form.pattern})$"
        return {
            "type": "object",
            "additionalProperties": self._kind.schema(),
            "propertyNames": {"pattern": form},
        }


class EitherKind:
    """One of several kinds, by the form it is written in: a scalar, a list, or a mapping."""

    def __init__(
        self,
        noun: str,
        hint: str,
        *,
        scalar: ValueKind | None = None,
        listed: ValueKind | None = None,
        keyed: ValueKind | None = None,
    ) -> None:
        self.noun = noun
        self.hint = hint
        self._kinds: dict[type, ValueKind] = {
            form: kind
            for form, kind in ((ScalarNode, scalar), (ListNode, listed), (MappingNode, keyed))
            if kind is not None
        }

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        kind = self._kinds.get(node.__class__)
        if kind is None or (isinstance(node, ScalarNode) and node.is_nothing):
            return wrong(node, field, problems, self.noun, self.hint)
        return kind.read(node, field, problems)

    def schema(self) -> Schema:
        return {"anyOf": [kind.schema() for kind in self._kinds.values()]}


class DeferredKind:
    """Returned as it is, to be read later when more is known. The schema is that of the kind."""

    noun = "data"
    hint = ""

    def __init__(self, kind: ValueKind) -> None:
        self._kind = kind

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        return node

    def schema(self) -> Schema:
        return self._kind.schema()


class ReferenceKind:
    """A task, for the schema only: a reference to its one definition."""

    noun = "a task"
    hint = "use a mapping"

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        return node

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self._name}"}


class SlotsKind:
    """The number of slots: a number, `auto`, or the bounds of `auto`."""

    noun = "a number of slots"
    hint = "use a whole number, 1 or more, or auto"

    def __init__(self, bounds: RecordKind) -> None:
        self._bounds = bounds
        self._number = IntegerKind(1, 100_000)

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, MappingNode):
            found = self._bounds.read(node, field, problems)
            if found is WRONG:
                return WRONG
            try:
                return Auto(**found.values)
            except InvalidOption as error:
                problems.add(node, field, str(error))
                return WRONG
        if isinstance(node, ScalarNode) and node.value == "auto":
            return Auto()
        if isinstance(node, ScalarNode) and not WHOLE.fullmatch(node.value):
            return wrong(node, field, problems, self.noun, self.hint)
        return self._number.read(node, field, problems)

    def schema(self) -> Schema:
        return {"anyOf": [self._number.schema(), {"const": "auto"}, self._bounds.schema()]}

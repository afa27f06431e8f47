"""Variables, and the holes in texts that they fill: `{{name}}`, `{{item}}`, `{{index}}`.

References to results of other tasks are holes too. In prompts and questions they are kept, for the
runtime to fill; anywhere else they are rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from interlock.model.template import FIELDS, Reference, Template, holes, reference
from interlock.plan.literal_secrets import ELSEWHERE, secret_in
from interlock.plan.node import ListNode, MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems, SizeLimit
from interlock.plan.scalar_kinds import NUMBER, WRONG, Schema, TextKind, wrong

Item: TypeAlias = str | dict[str, str]
Given: TypeAlias = str | tuple[Item, ...] | None
"""The value of a variable; None: it has to be set."""
RESERVED: Final = ("item", "index")
QUOTING: Final = ("prompt", "ask")
BRACES: Final = ". For two literal braces, write \\{{"
MOST_TEXT: Final = 64 * 1024 * 1024
"""How many characters all tasks together may have after their holes are filled."""
_LATER: Final = ("diff", "branch", "changed_paths")


class QuotingNode(ScalarNode):
    """Text with references to the results of other tasks."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[str | Reference], line: int, column: int) -> None:
        super().__init__("", False, line, column)
        self.parts = tuple(parts)


class PromptKind(TextKind):
    """Text that may quote results, and is a Template then."""

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, QuotingNode):
            return Template(node.parts)
        return super().read(node, field, problems)


class VariableKind:
    """The value of a variable: text or a list of items; nothing if it has to be set."""

    noun = "text or a list"
    hint = "use text or a list"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode):
            return None if node.is_nothing else node.value
        return ItemsKind().read(node, field, problems)

    def schema(self) -> Schema:
        return {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, *_LIST]}


class ItemsKind:
    """A list of items, each text or a mapping of names to text."""

    noun = "a list"
    hint = "use a list, or the name of a variable that is a list"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, ListNode):
            return wrong(node, field, problems, self.noun, self.hint)
        read = [self._item(each, field, problems) for each in node.items]
        return WRONG if WRONG in read else tuple(read)

    def _item(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, MappingNode) and not node.unreadable:
            found = {
                name: TextKind(blank=True).read(value, f"{field}.{name}", problems)
                for name, (_, value) in node.entries.items()
            }
            return WRONG if WRONG in found.values() else found
        noun, hint = "an item", "use text, or a mapping of names to text"
        return TextKind(noun, hint, blank=True).read(node, field, problems)

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "string"}, *_LIST]}


_SCALAR: Final = {"type": ["string", "number", "boolean"]}
_ITEM: Final = {"anyOf": [_SCALAR, {"type": "object", "additionalProperties": _SCALAR}]}
_LIST: Final = [{"type": "array", "items": _ITEM}]


def listed(text: str) -> tuple[str, ...]:
    """Split a list that is written as text: `a, b`."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


class Scope:
    """What the names in holes stand for in one task."""

    def __init__(
        self,
        variables: Mapping[str, Given],
        tasks: Collection[str] = (),
        item: Item | None = None,
        index: int = 0,
    ) -> None:
        self.variables = variables
        self.tasks = tasks
        """The names of all tasks, for suggestions only."""
        self.item = item
        self.index = index
        self.used: set[str] = set()
        self._budget = SizeLimit(MOST_TEXT, f"more than {MOST_TEXT:,} characters of text")

    def of_item(self, item: Item, index: int) -> Scope:
        """Return the scope of one item of a list. `index` counts from 1."""
        scope = Scope(self.variables, self.tasks, item, index)
        scope.used, scope._budget = self.used, self._budget
        return scope

    def task(self, node: MappingNode, field: str, problems: Problems) -> MappingNode:
        """Return a task with every hole filled, except references to results."""
        if not node.has_holes:
            return node
        made = MappingNode(node.line, node.column)
        made.unreadable = node.unreadable
        for name, (key, value) in node.entries.items():
            if name != "for_each":
                value = self.filled(value, f"{field}.{name}", problems, name in QUOTING)
            made.entries[name] = (key, value)
        return made

    def filled(self, node: Node, field: str, problems: Problems, quoting: bool = False) -> Node:
        """Return the tree with every hole filled."""
        if isinstance(node, ScalarNode):
            return self._scalar(node, field, problems, quoting) if "{{" in node.value else node
        if not node.has_holes:
            return node
        if isinstance(node, ListNode):
            made = ListNode(node.line, node.column)
            made.items = [self.filled(each, field, problems) for each in node.items]
            return made
        found = MappingNode(node.line, node.column)
        found.unreadable = node.unreadable
        for name, (key, value) in node.entries.items():
            found.entries[name] = (key, self.filled(value, f"{field}.{name}", problems))
        return found

    def _scalar(
        self, node: ScalarNode, field: str, problems: Problems, quoting: bool
    ) -> ScalarNode:
        parts = self.parts(node.value, node, field, problems)
        if any(isinstance(each, Reference) for each in parts):
            if quoting:
                return QuotingNode(parts, node.line, node.column)
            problems.add(node, field, "results of tasks can be quoted only in `prompt` and `ask`")
            parts = [str(each) for each in parts]
        text = "".join(each for each in parts if isinstance(each, str))
        # A hole alone is in quotes only because of its braces: its value may still be a number.
        alone = node.value.strip().startswith("{{") and node.value.count("{{") == 1
        is_value = NUMBER.fullmatch(text) or text.lower() in ("true", "false")
        return ScalarNode(text, bool(alone and is_value), node.line, node.column)

    def parts(self, text: str, at: Node, field: str, problems: Problems) -> list[str | Reference]:
        """Return the text with its holes filled, in parts: strings and references to tasks."""
        found: list[str | Reference] = []
        for part in holes(text):
            value = part if isinstance(part, str) else self._value(part.text, at, field, problems)
            found.append("" if value is None else value)
            if isinstance(value, str):
                self._budget.take(len(value), at, field, problems)
        if len(found) > 1:  # Each part by itself has been checked already.
            what = secret_in("".join(each for each in found if isinstance(each, str)))
            if what is not None:
                problems.add(at, field, f"with its variables it contains {what}; {ELSEWHERE}")
        return found

    def _value(self, name: str, at: Node, field: str, problems: Problems) -> str | Reference | None:
        first, _, rest = name.partition(".")
        if self.item is not None and first in RESERVED:
            return self._of_item(first, rest, name, at, field, problems)
        if name in self.variables:
            return self._variable(name, at, field, problems)
        ref = reference(name)
        if ref is not None:
            return ref
        if rest and rest.rpartition(".")[2] in _LATER:
            what = "needs git worktrees, which do not exist yet"
            problems.add(at, field, f"{{{{{name}}}}} {what}")
        elif rest:
            before, _, last = name.rpartition(".")
            meant = [f"{{{{{before}.{each}}}}}" for each in get_close_matches(last, FIELDS, n=1)]
            text = f"{{{{{name}}}}}: a task has no {last!r}; it has {', '.join(FIELDS)}"
            problems.add(at, field, text + (BRACES * (not meant)), "".join(meant))
        elif name in self.tasks:
            problems.add(at, field, f"{{{{{name}}}}} is a task, not text", f"{{{{{name}.output}}}}")
        else:
            more = f". Set it under `variables` or with --set{BRACES}"
            text = f"there is no variable {name!r}"
            problems.unknown(at, field, name, text, self.variables, more)
        return None

    def _variable(self, name: str, at: Node, field: str, problems: Problems) -> str | None:
        self.used.add(name)
        value = self.variables[name]
        if value is None:
            problems.add(at, field, f"{name!r} has no value; give it one with --set {name}=...")
            return None
        if isinstance(value, str):
            return value
        if all(isinstance(each, str) for each in value):
            return ", ".join(str(each) for each in value)
        problems.add(at, field, f"{name!r} is a list of mappings; use it in `for_each`")
        return None

    def _of_item(
        self, first: str, rest: str, name: str, at: Node, field: str, problems: Problems
    ) -> str | None:
        if first == "index":
            return str(self.index)
        if isinstance(self.item, str):
            if not rest:
                return self.item
            problems.add(at, field, f"{{{{{name}}}}}: the items are text", "{{item}}")
            return None
        assert self.item is not None
        if rest in self.item:
            return self.item[rest]
        text = f"{{{{{name}}}}}: the item has no {rest!r}" if rest else "{{item}} is a mapping"
        problems.unknown(at, field, rest, text, self.item)
        return None

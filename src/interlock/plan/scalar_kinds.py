"""What a single value of a file can be: how it is read, and how JSON Schema says the same.

Each kind reads a node and returns its value, or WRONG after noting what is wrong with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, Protocol

from interlock.plan.literal_secrets import hidden
from interlock.plan.node import MappingNode, Node, ScalarNode
from interlock.plan.problems import Problems

WRONG: Final[Any] = object()
WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
HOLE: Final = r"\{\{.+\}\}"
"""In a schema: a variable may stand in for a value of any kind."""

Schema = dict[str, Any]


class ValueKind(Protocol):
    """What a value can be."""

    @property
    def allowed(self) -> str:
        """What to write, for messages."""

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        """The value, or WRONG."""

    def schema(self) -> Schema:
        """The same in JSON Schema."""


def wrong(node: Node, field: str, problems: Problems, allowed: str, suggestion: str = "") -> Any:
    """Note that something else is allowed here."""
    if isinstance(node, ScalarNode):
        if node.is_nothing:
            problems.add(node, field, f"there is no value; {allowed}, or leave it out")
        else:
            text = hidden(node.value)  # first: of a secret, half is too much as well
            text = text if len(text) <= 60 else f"{text[:60]}..."
            problems.add(node, field, f"{text!r} is not possible; {allowed}", suggestion)
    elif not (isinstance(node, MappingNode) and node.unreadable):
        what = "a mapping" if isinstance(node, MappingNode) else "a list"
        problems.add(node, field, f"{what} is not possible here; {allowed}")
    return WRONG


class TextKind:
    """Text as it was written, also where YAML would see a number or a truth in it."""

    def __init__(self, allowed: str = "write text", form: str = "", blank: bool = False) -> None:
        self.allowed = allowed
        self._form = re.compile(form) if form else None
        self._blank = blank

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if node.__class__ is not ScalarNode:
            return wrong(node, field, problems, self.allowed)
        value: str = node.value
        if not value.strip() and not (self._blank and not node.plain):
            return wrong(
                ScalarNode("", True, node.line, node.column), field, problems, self.allowed
            )
        if node.plain and node.is_nothing:
            return wrong(node, field, problems, self.allowed)
        if self._form is not None and self._form.fullmatch(value) is None:
            return wrong(node, field, problems, self.allowed)
        if "\0" in value:
            problems.add(node, field, "there is a NUL character in it")
            return WRONG
        return value

    def schema(self) -> Schema:
        form = {"pattern": f"^(?:{self._form.pattern})$|{HOLE}"} if self._form else {}
        return {"type": ["string", "number", "boolean"], **form}


class IntegerKind:
    """A whole number between bounds."""

    def __init__(self, least: int = -(10**9), most: int = 10**9) -> None:
        self._least, self._most = least, most

    @property
    def allowed(self) -> str:
        return "write a whole number" + ("" if self._least < -1 else f", {self._least} or more")

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and node.plain and WHOLE.fullmatch(node.value):
            number = int(node.value)
            if self._least <= number <= self._most:
                return number
            if number > self._most:
                return wrong(node, field, problems, f"it can be at most {self._most:,}")
        quoted = isinstance(node, ScalarNode) and not node.plain
        return wrong(node, field, problems, self.allowed + (", without quotes" * quoted))

    def schema(self) -> Schema:
        number = {"type": "integer", "minimum": self._least, "maximum": self._most}
        return {"anyOf": [number, {"type": "string", "pattern": HOLE}]}


class PercentKind:
    """A number above 0 and up to 100."""

    allowed = "write a number above 0, at most 100 (percent)"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and node.plain and NUMBER.fullmatch(node.value):
            number = float(node.value)
            if 0 < number <= 100:
                return number
        return wrong(node, field, problems, self.allowed)

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": 100}


class BooleanKind:
    """True or false."""

    allowed = "write true or false"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and node.plain:
            if node.value.lower() in ("true", "false"):
                return node.value.lower() == "true"
            meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}
            suggestion = meant.get(node.value.lower(), "")
            return wrong(node, field, problems, self.allowed, suggestion)
        return wrong(node, field, problems, self.allowed)

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": HOLE}]}


class ChoiceKind:
    """One of a few words; some others do not exist yet."""

    def __init__(self, *words: str, later: Mapping[str, str] | None = None) -> None:
        self._words = words
        self._later = later or {}
        self.allowed = "write " + " or ".join(words)

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, ScalarNode):
            return wrong(node, field, problems, self.allowed)
        if node.value in self._words:
            return node.value
        if node.value in self._later:
            what = self._later[node.value]
            problems.add(
                node, field, f"{node.value!r} needs {what}, which do not exist yet; {self.allowed}"
            )
            return WRONG
        near = get_close_matches(node.value.lower(), self._words, n=1)
        return wrong(node, field, problems, self.allowed, "".join(near))

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(self._words)}, {"type": "string", "pattern": HOLE}]}


class DataKind:
    """Any data: text, numbers, true, false, null, lists and mappings of them."""

    allowed = "write any data"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode):
            return scalar_value(node)
        if isinstance(node, MappingNode):
            return {
                name: self.read(value, f"{field}.{name}", problems)
                for name, (_, value) in node.entries.items()
            }
        return [
            self.read(each, f"{field}[{number}]", problems)
            for number, each in enumerate(node.items)
        ]

    def schema(self) -> Schema:
        return {}


def scalar_value(node: ScalarNode) -> Any:
    """What a value is that may be anything. Of words only true, false and null are none."""
    text = node.value
    if not node.plain:
        return text
    if node.is_nothing:
        return None
    if text.lower() in ("true", "false") and text in (text.lower(), text.title(), text.upper()):
        return text.lower() == "true"
    if WHOLE.fullmatch(text):
        return int(text)
    if NUMBER.fullmatch(text) and not re.match(r"[-+]?0\d", text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text

"""Kinds of single values: how each is read, what to say if it is wrong, and its JSON Schema.

`read` returns the value, or WRONG after it has noted the problem.
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
"""In a schema: a variable may replace a value of any kind."""

Schema = dict[str, Any]


class ValueKind(Protocol):
    """A kind of value."""

    @property
    def noun(self) -> str:
        """What it is, with an article: `a valid duration`."""

    @property
    def hint(self) -> str:
        """What to write: `use 90s, 10m or 1h30m`."""

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        """Return the value, or WRONG."""

    def schema(self) -> Schema:
        """Return the same as JSON Schema."""


def wrong(
    node: Node, field: str, problems: Problems, noun: str, hint: str, suggestion: str = ""
) -> Any:
    """Note that a value is not of the kind that is expected here, and return WRONG."""
    if isinstance(node, ScalarNode):
        if node.is_nothing:
            problems.add(node, field, f"the value is missing; {hint}, or leave the key out")
        else:
            text = hidden(node.value)  # Before it is cut: half a secret is too much as well.
            text = text if len(text) <= 60 else f"{text[:60]}..."
            problems.add(node, field, f"{text!r} is not {noun}; {hint}", suggestion)
    elif not (isinstance(node, MappingNode) and node.unreadable):
        what = "a mapping" if isinstance(node, MappingNode) else "a list"
        expected = noun.replace(" valid", "")
        more = "" if hint == f"use {expected}" else f"; {hint}"
        problems.add(node, field, f"expected {expected}, not {what}{more}")
    return WRONG


class TextKind:
    """Text as it was written, also where YAML would see a number or a boolean in it."""

    def __init__(
        self, noun: str = "text", hint: str = "use text", form: str = "", blank: bool = False
    ) -> None:
        self.noun = noun
        self.hint = hint
        self._form = re.compile(form) if form else None
        self._blank = blank

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if node.__class__ is not ScalarNode:
            return wrong(node, field, problems, self.noun, self.hint)
        value: str = node.value
        if not value.strip() and not (self._blank and not node.plain):
            nothing = ScalarNode("", True, node.line, node.column)
            return wrong(nothing, field, problems, self.noun, self.hint)
        if node.plain and node.is_nothing:
            return wrong(node, field, problems, self.noun, self.hint)
        if self._form is not None and self._form.fullmatch(value) is None:
            return wrong(node, field, problems, self.noun, self.hint)
        if "\0" in value:
            problems.add(node, field, "it contains a NUL character")
            return WRONG
        return value

    def schema(self) -> Schema:
        form = {"pattern": f"^(?:{self._form.pattern})$|{HOLE}"} if self._form else {}
        return {"type": ["string", "number", "boolean"], **form}


class IntegerKind:
    """A whole number between bounds."""

    noun = "a whole number"

    def __init__(self, least: int = -(10**9), most: int = 10**9) -> None:
        self._least, self._most = least, most

    @property
    def hint(self) -> str:
        return "use digits only" if self._least < -1 else f"use {self._least} or more"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and WHOLE.fullmatch(node.value):
            number = int(node.value)
            if not node.plain:
                problems.add(
                    node, field, f"{node.value!r} is text; write the number without quotes"
                )
                return WRONG
            if self._least <= number <= self._most:
                return number
            if number > self._most:
                return wrong(node, field, problems, "allowed here", f"use at most {self._most:,}")
            return wrong(node, field, problems, "allowed here", self.hint)
        return wrong(node, field, problems, self.noun, self.hint)

    def schema(self) -> Schema:
        number = {"type": "integer", "minimum": self._least, "maximum": self._most}
        return {"anyOf": [number, {"type": "string", "pattern": HOLE}]}


class PercentKind:
    """A number above 0 and up to 100."""

    noun = "a percentage"
    hint = "use a number above 0 and at most 100"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and node.plain and NUMBER.fullmatch(node.value):
            number = float(node.value)
            if 0 < number <= 100:
                return number
        return wrong(node, field, problems, self.noun, self.hint)

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": 100}


class BooleanKind:
    """True or false."""

    noun = "a boolean"
    hint = "use true or false"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and node.plain:
            if node.value.lower() in ("true", "false"):
                return node.value.lower() == "true"
            meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}
            suggestion = meant.get(node.value.lower(), "")
            return wrong(node, field, problems, self.noun, self.hint, suggestion)
        return wrong(node, field, problems, self.noun, self.hint)

    def schema(self) -> Schema:
        return {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": HOLE}]}


class ChoiceKind:
    """One of a few words. Some other words are reserved for features that do not exist yet."""

    def __init__(self, *words: str, later: Mapping[str, str] | None = None) -> None:
        self._words = words
        self._later = later or {}
        self.noun = "a valid value"
        self.hint = "use " + " or ".join(words)

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, ScalarNode):
            return wrong(node, field, problems, self.noun, self.hint)
        if node.value in self._words:
            return node.value
        if node.value in self._later:
            what = self._later[node.value]
            problems.add(
                node, field, f"{node.value!r} needs {what}, which do not exist yet; {self.hint}"
            )
            return WRONG
        near = get_close_matches(node.value.lower(), self._words, n=1)
        return wrong(node, field, problems, self.noun, self.hint, "".join(near))

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": list(self._words)}, {"type": "string", "pattern": HOLE}]}


class DataKind:
    """Any data: text, numbers, true, false, null, lists and mappings of them."""

    noun = "data"
    hint = "use any data"

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
    """Return the value of a scalar that may be anything. Only true, false and null are not text."""
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

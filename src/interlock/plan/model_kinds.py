"""Kinds of values that the model understands: durations, times, patterns, resources, quotas."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from interlock.errors import InvalidOption, UsageError
from interlock.model.claim import Claim, uses_text
from interlock.model.duration import seconds
from interlock.model.limits import Quota
from interlock.model.patterns.overlap import any_path
from interlock.model.patterns.pattern import parse
from interlock.plan.node import Node, ScalarNode
from interlock.plan.problems import Problems
from interlock.plan.scalar_kinds import HOLE, NUMBER, WRONG, Schema, wrong


class DurationKind:
    """A length of time, in seconds."""

    noun = "a valid duration"
    hint = "use 90s, 10m or 1h30m"

    def __init__(self, zero: bool = False) -> None:
        self._zero = zero

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, ScalarNode) or node.is_nothing:
            return wrong(node, field, problems, self.noun, self.hint)
        text = node.value
        try:
            plain = node.plain and NUMBER.fullmatch(text)
            found = seconds(float(text) if plain else text)
        except (InvalidOption, OverflowError):
            return wrong(node, field, problems, self.noun, self.hint)
        if not found and not self._zero:
            problems.add(node, field, f"{text!r} is not {self.noun} here; it must be above zero")
            return WRONG
        return found

    def schema(self) -> Schema:
        form = r"^\s*(?:[0-9]+(?:\.[0-9]+)?\s*(?:ms|sec|s|min|m|h|d)\s*)+$"
        number = {"type": "number", "minimum" if self._zero else "exclusiveMinimum": 0}
        text = {"type": "string", "pattern": f"{form}|{HOLE}"}
        return {"anyOf": [number, text]}


class MomentKind(DurationKind):
    """A length of time, or a date and time with its zone."""

    noun = "a valid duration or time"
    hint = "use 1h30m, or a time with its zone: 2026-12-24T18:00:00+01:00"

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if isinstance(node, ScalarNode) and re.match(r"\d{4}-\d\d-\d\d[T ]", node.value):
            try:
                found = datetime.fromisoformat(node.value)
            except ValueError:
                return wrong(node, field, problems, self.noun, self.hint)
            if found.tzinfo is None:
                problems.add(node, field, f"{node.value!r} has no time zone; add Z or +01:00")
                return WRONG
            return found
        return super().read(node, field, problems)

    def schema(self) -> Schema:
        date = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d[T ].*(?:Z|[+-]\d\d:?\d\d)$"}
        return {"anyOf": [*super().schema()["anyOf"], date]}


class ParsedKind:
    """Text that a parser of the model understands; its error becomes the problem."""

    noun = "text"
    hint = "use text"

    def _parse(self, text: str) -> Any:
        raise NotImplementedError

    def read(self, node: Node, field: str, problems: Problems) -> Any:
        if not isinstance(node, ScalarNode) or node.is_nothing or not node.value.strip():
            return wrong(node, field, problems, self.noun, self.hint)
        try:
            return self._parse(node.value)
        except UsageError as error:
            problems.add(node, field, str(error))
        except re.error as error:
            problems.add(node, field, f"{node.value!r} is not a valid regular expression: {error}")
        return WRONG

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}


class PathPatternKind(ParsedKind):
    """A pattern of paths inside the workspace."""

    noun = "a path or pattern"
    hint = "use a path such as src/api/, or a pattern such as docs/*.md"

    def _parse(self, text: str) -> str:
        for each in parse(text).alternatives:
            if not (each.is_plain or each.is_subtree) and any_path(each.rest) is None:
                raise InvalidOption(f"no path can match {text!r}")
        return text


class ResourceKind(ParsedKind):
    """A resource as written in plans."""

    noun = "a resource"
    hint = "use gpu, memory_mb=2048 or db:staging!"

    def _parse(self, text: str) -> Claim:
        if len(text) > 300:
            raise InvalidOption("the name of a resource is at most 300 characters long")
        return uses_text(text)


class QuotaKind(ParsedKind):
    """An amount per time."""

    noun = "a quota"
    hint = "use 60/min, 100k/min or 10/5s"

    def _parse(self, text: str) -> Quota:
        if len(text) > 40:
            raise InvalidOption(f"this is not {self.noun}; {self.hint}")
        return Quota.parse(text)


class RegexKind(ParsedKind):
    """A regular expression."""

    noun = "a regular expression"
    hint = "use for example 'rate limit|429'"

    def _parse(self, text: str) -> str:
        re.compile(text)
        return text

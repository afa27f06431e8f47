"""JSON for what the journal keeps, and back: the same types come out as went in. No pickle.

Plain data is plain JSON. Whatever JSON has no word for is an object with its type under `$`:

    {"$": "tuple", "of": [1, 2]}                a type that everybody has
    {"$": "Claim", "of": {"resource": ...}}     a record of ours, without what is default in it
    {"$": "app.models:Report", "of": {...}}     a dataclass, enum, named tuple or Pydantic model

The last kind becomes an object again if its class is loaded at that time, and plain data
otherwise: a journal never makes anybody import anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from interlock.errors import InvalidOption, NotStorable
from interlock.journal import agent_identity as agents
from interlock.journal.rows import column
from interlock.journal.schema import builtin_types as everyday
from interlock.journal.schema import outcomes, tasks
from interlock.journal.schema import own_records as records
from interlock.journal.schema import user_types as shapes
from interlock.journal.schema.plain_json import as_json, in_utf8
from interlock.model.outcome import Outcome
from interlock.model.redaction import Redaction
from interlock.model.task import Task

MAX_DEPTH = 100
"""Nesting beyond this is refused: it is most likely a structure that contains itself."""
_LARGEST = 10**4000
"""Python neither writes nor reads much longer numbers as text."""

Encoder = Callable[["Walk", Any], Any]


class Unstorable(Exception):
    """On its way up from the value that cannot be stored, collecting the path to it."""

    def __init__(self, value: Any, problem: str = "") -> None:
        self.kind = shapes.name_of(type(value))
        self.problem = problem
        self.path: list[str] = []


class Codec:
    """Writes and reads values. `known` are further named tuples that become themselves again."""

    def __init__(self, known: Iterable[type] = (), redact: Iterable[str] = ()) -> None:
        self.redaction = Redaction(redact)
        self._known: dict[str, type] = {each.__name__: each for each in (*records.OURS, *known)}
        ours = {each: records.encoder(each) for each in self._known.values()}
        self._quick = {each: records.writer(each) for each in ours if hasattr(each, "_fields")}
        self.encoders: dict[type, Encoder] = {**everyday.ENCODERS, **ours}
        self.encoders[Task] = tasks.encode
        self.encoders[Outcome] = outcomes.encode

    def dumps(self, value: Any, what: str = "value") -> str:
        """The value as JSON; raises NotStorable, with the path from `what` to what cannot be."""
        return self._text(Walk(self, lenient=False), value, what)

    def dumps_leniently(self, value: Any) -> str:
        """The same, with the type in the place of whatever cannot be stored."""
        quick = self._quick.get(type(value))
        if quick is not None:
            text = quick(value)
            if text is not None and not (self.redaction and self.redaction.may_be_in(text)):
                return text
        try:
            return self._text(Walk(self, lenient=True), value, "value")
        except NotStorable as bad:
            return self.dumps(records.NotStored(bad.kind, bad.path))

    def task(self, task: Task) -> tuple[str, str]:
        """A task as JSON, and its fingerprint."""
        walk = Walk(self, lenient=True)
        try:
            tree = tasks.encode(walk, task)
        except Unstorable:  # arguments that contain themselves: the program brings them again
            tree = tasks.encode(walk, task.replace(args=(), kwargs={}))
        try:
            settings = agents.settings(walk, task.agent)
        except Exception:  # noqa: BLE001 - agents are strangers: this one is known by its name only
            settings = None
        same = tasks.fingerprint(tasks.work_of(tree["of"], settings))
        return self._finished(tree), same

    def check_name(self, what: str, name: str) -> None:
        """Raise InvalidOption for what cannot be found again under its name, if it is written."""
        if not isinstance(name, str):
            raise InvalidOption(f"{what} is {name!r}; it has to be text")
        if self.redaction and self.redaction.text(name) != name:
            raise InvalidOption(
                f"{what} contains one of the secrets; they never reach the journal, so it could "
                "not be found again. Name it by something else"
            )
        if not name.isascii() and column(name) != name:
            raise InvalidOption(
                f"{what} is {name!r}, which has half a character (a surrogate) in it, and a "
                "journal cannot keep that. Name it by something else"
            )

    def loads(self, text: str | bytes) -> Any:
        """The value that was written."""
        return json.loads(text, object_hook=self._restore)

    def _finished(self, tree: Any) -> str:
        text = as_json(tree)
        if self.redaction and self.redaction.may_be_in(text):
            tree = self.redaction.tree(tree)
            text = as_json(tree)
        return in_utf8(tree, text)

    def _text(self, walk: Walk, value: Any, what: str) -> str:
        try:
            return self._finished(walk.tree(value))
        except Unstorable as bad:
            path = what + "".join(reversed(bad.path))
            raise NotStorable(path, bad.kind, bad.problem) from None

    def _restore(self, fields: dict[str, Any]) -> Any:
        kind = fields.get("$")
        if kind is None or "of" not in fields:
            return fields
        of = fields["of"]
        if kind == "Task":
            return tasks.restored(of)
        if kind == "Outcome":
            return outcomes.restored(of)
        if kind in self._known:
            return records.restored(self._known[kind], of)
        if kind in everyday.DECODERS:
            return everyday.DECODERS[kind](of)
        return shapes.restored(kind, fields)


class Walk:
    """One value on its way to JSON."""

    __slots__ = ("_depth", "_encoders", "lenient", "redaction")

    def __init__(self, codec: Codec, lenient: bool) -> None:
        self._encoders = codec.encoders
        self._depth = 0
        self.redaction = codec.redaction
        self.lenient = lenient

    def tree(self, value: Any) -> Any:
        """The value in terms of what JSON has."""
        kind = type(value)
        if kind is str or value is None or kind is bool:
            return value
        if kind is int:
            if -_LARGEST < value < _LARGEST:
                return value
            return self.refused(value, "a number of more than 4,000 digits")
        try:
            encoder = self._encoders.get(kind)
            if encoder is None:
                encoder = shapes.encoder(kind)
                if encoder is None:
                    return self.refused(value)
                self._encoders[kind] = encoder
            return encoder(self, value)
        except Unstorable:
            raise
        except Exception as error:  # noqa: BLE001 - to look at a stranger runs the stranger's code
            why = f"a {shapes.name_of(kind)} that cannot be read ({type(error).__name__})"
            return self.refused(value, why)

    def refused(self, value: Any, problem: str = "") -> Any:
        """What stands in the place of something that cannot be stored, if that is allowed."""
        bad = Unstorable(value, problem)
        if not self.lenient:
            raise bad
        return records.stand_in(self, value, bad.kind)

    def items(self, values: Iterable[Any]) -> list[Any]:
        """Each of several values."""
        self._go_deeper(values)
        found: list[Any] = []
        try:
            for value in values:
                found.append(self.tree(value))
        except Unstorable as bad:
            bad.path.append(f"[{len(found)}]")
            raise
        finally:
            self._depth -= 1
        return found

    def fields(self, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Each of several named values."""
        self._go_deeper(values)
        name = ""
        found: dict[str, Any] = {}
        try:
            for name, value in values:
                found[name] = self.tree(value)
        except Unstorable as bad:
            bad.path.append(f".{name}" if name.isidentifier() else f"[{name!r}]")
            raise
        finally:
            self._depth -= 1
        return found

    def _go_deeper(self, value: Any) -> None:
        if self._depth >= MAX_DEPTH:
            # Not even leniently: what contains itself would be written a hundred times over.
            raise Unstorable(value, f"nested more than {MAX_DEPTH} deep, or contains itself")
        self._depth += 1

    def whole(self, value: Any, what: str) -> Any:
        """The value if all of it can be stored; otherwise what is in the way."""
        lenient, self.lenient = self.lenient, False
        try:
            return self.tree(value)
        except Unstorable as bad:
            path = what + "".join(reversed(bad.path))
            return self.tree(records.NotStored(bad.kind, path))
        finally:
            self.lenient = lenient

"""Values to JSON and back: the same types come out as went in. No pickle.

Plain data is plain JSON. A value of any other type is an object with its type under `$`:

    {"$": "tuple", "of": [1, 2]}                a type of the standard library
    {"$": "claim", "of": {"resource": ...}}     a record of ours, without what is default in it
    {"$": "task/2", "of": {"id": ...}}          the same, of the second version
    {"$": "app.models:Report", "of": {...}}     a dataclass, enum, named tuple or Pydantic model

The last kind becomes an object again if its class is loaded at that time, and plain data
otherwise: reading a journal never imports a module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from interlock.errors import InvalidOption, NotStorable
from interlock.journal import agent_identity as agents
from interlock.journal.rows import column
from interlock.journal.schema import builtin_types, outcomes, tasks
from interlock.journal.schema import own_records as records
from interlock.journal.schema import user_types as shapes
from interlock.journal.schema.encoding import Encoder
from interlock.journal.schema.names import EVENTS, FIRST_EVENT_NAMES, RECORDS, split_tag, tag_of
from interlock.journal.schema.plain_json import as_json, in_utf8
from interlock.journal.schema.upcasters import up_to_date
from interlock.model.event import Kind
from interlock.model.outcome import Outcome
from interlock.model.redaction import Redaction
from interlock.model.task import Task

MAX_DEPTH = 100
"""Deeper nesting is rejected: it is most likely a structure that contains itself."""
_LARGEST = 10**4000
"""Python limits the conversion of longer numbers from and to text."""

_NONE: Mapping[str, type] = MappingProxyType({})


class Unstorable(Exception):
    """Raised at a value that cannot be stored; collects the path to it on its way up."""

    def __init__(self, value: Any, problem: str = "") -> None:
        self.kind = shapes.name_of(type(value))
        self.problem = problem
        self.path: list[str] = []


class UnknownName(Exception):
    """The data has a name or a version that this Interlock does not know."""

    def __init__(self, what: str, tag: str, known: int | None) -> None:
        name, version = split_tag(tag)
        self.problem = f"{what} {name!r} has version {version}, and this Interlock knows " + (
            f"versions up to {known} of it" if known else "nothing of that name"
        )
        super().__init__(self.problem)


class UnknownField(UnknownName):
    """A record has a field that this Interlock does not know."""

    def __init__(self, record: str, field: str) -> None:
        self.problem = f"the record {record!r} has a field {field!r}, which is not known here"
        Exception.__init__(self, self.problem)


UNDECODABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What decoding raises for data that no version has written, although its checksum is right."""


def kind_of(tag: str) -> Kind:
    """The kind of event that is written like this; raises UnknownName."""
    found = _KINDS.get(tag)
    if found is None:
        raise UnknownName("the event", tag, EVENTS.get(split_tag(tag)[0]))
    return found


EVENT_TAGS: dict[Kind, str] = {kind: tag_of(kind.value, EVENTS[kind.value]) for kind in Kind}
"""How each kind of event is written today."""

_KINDS: dict[str, Kind] = {
    **{first: Kind(name) for first, name in FIRST_EVENT_NAMES.items()},
    **{
        tag_of(name, each): Kind(name)
        for name, version in EVENTS.items()
        for each in range(1, version + 1)
    },
}


class Codec:
    """Writes and reads values.

    `known` are the classes of further records by their wire names (see `names.py`). A record whose
    class is not known is read as plain data; one whose name is not known raises UnknownName.
    """

    def __init__(self, known: Mapping[str, type] = _NONE, redact: Iterable[str] = ()) -> None:
        self.redaction = Redaction(redact)
        classes = {**records.OWN_TYPES, **known}
        ours = {kind: records.encoder(name, kind) for name, kind in classes.items()}
        self._quick = {
            kind: records.writer(name, kind)
            for name, kind in classes.items()
            if hasattr(kind, "_fields")
        }
        self.encoders: dict[type, Encoder] = {**builtin_types.ENCODERS, **ours}
        self.encoders[Task] = tasks.encode
        self.encoders[Outcome] = outcomes.encode
        self._decoders: dict[str, Callable[[Any], Any]] = dict(builtin_types.DECODERS)
        for schema in RECORDS.values():
            for tag, version in schema.tags.items():
                kind = classes.get(schema.name)
                self._decoders[tag] = _decoder(schema.name, version, kind)

    def dumps(self, value: Any, what: str = "value") -> str:
        """The value as JSON. Raises NotStorable, with the path to what cannot be stored."""
        return self._text(ValueWalk(self, lenient=False), value, what)

    def dumps_leniently(self, value: Any) -> str:
        """The same, with a stand-in in the place of what cannot be stored."""
        quick = self._quick.get(type(value))
        if quick is not None:
            text = quick(value)
            if text is not None and not (self.redaction and self.redaction.may_be_in(text)):
                return text
        try:
            return self._text(ValueWalk(self, lenient=True), value, "value")
        except NotStorable as bad:
            return self.dumps(records.NotStored(bad.kind, bad.path))

    def task(self, task: Task) -> tuple[str, str]:
        """A task as JSON, and its fingerprint."""
        walk = ValueWalk(self, lenient=True)
        try:
            tree = tasks.encode(walk, task)
        except Unstorable:  # arguments that contain themselves: the program submits them again
            tree = tasks.encode(walk, task.replace(args=(), kwargs={}))
        try:
            settings = agents.settings(walk, task.agent)
        except Exception:  # noqa: BLE001 - user code: this agent is known by its name only
            settings = None
        same = tasks.fingerprint(tasks.work_of(tree["of"], settings))
        return self._finished(tree), same

    def check_name(self, what: str, name: str) -> None:
        """Raise InvalidOption for a name under which nothing could be found again."""
        if not isinstance(name, str):
            raise InvalidOption(f"{what} is {name!r}; it has to be text")
        if self.redaction and self.redaction.text(name) != name:
            raise InvalidOption(
                f"{what} contains one of the secrets; they are never written to the journal, so it "
                "could not be found again. Choose another name"
            )
        if not name.isascii() and column(name) != name:
            raise InvalidOption(
                f"{what} is {name!r}, which contains half a character (a surrogate), and a "
                "journal cannot store that. Choose another name"
            )

    def loads(self, text: str | bytes) -> Any:
        """The value that was written. Raises UnknownName."""
        return json.loads(text, object_hook=self._restore)

    def _finished(self, tree: Any) -> str:
        text = as_json(tree)
        if self.redaction and self.redaction.may_be_in(text):
            tree = self.redaction.tree(tree)
            text = as_json(tree)
        return in_utf8(tree, text)

    def _text(self, walk: ValueWalk, value: Any, what: str) -> str:
        try:
            return self._finished(walk.tree(value))
        except Unstorable as bad:
            path = what + "".join(reversed(bad.path))
            raise NotStorable(path, bad.kind, bad.problem) from None

    def _restore(self, fields: dict[str, Any]) -> Any:
        tag = fields.get("$")
        if tag is None or "of" not in fields:
            return fields
        decode = self._decoders.get(tag)
        if decode is not None:
            return decode(fields["of"])
        if ":" in tag:
            return shapes.restored(tag, fields)
        name, _ = split_tag(tag)
        raise UnknownName("the record", tag, RECORDS[name].version if name in RECORDS else None)


def _decoder(name: str, version: int, kind: type | None) -> Callable[[Any], Any]:
    if name == "task":
        return lambda of: tasks.restored(_known_fields(name, up_to_date(name, version, of)))
    if name == "outcome":
        return lambda of: outcomes.restored(_known_fields(name, up_to_date(name, version, of)))
    return records.decoder(name, version, kind)


def _known_fields(name: str, of: dict[str, Any]) -> dict[str, Any]:
    """Raise UnknownField for a field that a later Interlock has added to a record."""
    for field in of:
        if field not in RECORDS[name].fields:
            raise UnknownField(name, field)
    return of


class ValueWalk:
    """The walk over one value; see `Walk` for what encoders use of it."""

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
        except Exception as error:  # noqa: BLE001 - reading a value of the user runs code of the user
            why = f"a {shapes.name_of(kind)} that cannot be read ({type(error).__name__})"
            return self.refused(value, why)

    def refused(self, value: Any, problem: str = "") -> Any:
        """The stand-in for a value that cannot be stored, if the walk is lenient."""
        bad = Unstorable(value, problem)
        if not self.lenient:
            raise bad
        return records.stand_in(self, value, bad.kind)

    def items(self, values: Iterable[Any]) -> list[Any]:
        """The tree of each of several values."""
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
        """The tree of each of several named values."""
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
            # Lenient or not: what contains itself would be written a hundred times over.
            raise Unstorable(value, f"nested more than {MAX_DEPTH} deep, or contains itself")
        self._depth += 1

    def whole(self, value: Any, what: str) -> Any:
        """The tree of a value if all of it can be stored; otherwise that of a stand-in."""
        lenient, self.lenient = self.lenient, False
        try:
            return self.tree(value)
        except Unstorable as bad:
            path = what + "".join(reversed(bad.path))
            return self.tree(records.NotStored(bad.kind, path))
        finally:
            self.lenient = lenient

"""The JSON forms of our own records: under their wire names, without fields at their default."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.journal.schema.names import RECORDS, RecordSchema
from interlock.journal.schema.plain_json import as_json, record_writer
from interlock.journal.schema.upcasters import up_to_date
from interlock.model.claim import Claim, Mode
from interlock.model.command import Command
from interlock.model.event import Kind
from interlock.model.limits import Breaker, Quota, Rate, Retry
from interlock.model.load import Auto, Gate, Load
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.model.template import Reference, Template
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker
from interlock.model.usage import Usage

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Encoder, Walk

_UNSET = object()


class NotStored(NamedTuple):
    """Stands for a value that could not be stored. `path` leads to the part that prevented it."""

    kind: str
    path: str = ""


class Awaited(NamedTuple):
    """Stands for the result of another task: a handle among the arguments."""

    task_id: str


OWN_TYPES: dict[str, type] = {
    "task": Task,
    "claim": Claim,
    "mode": Mode,
    "retry": Retry,
    "template": Template,
    "template_reference": Reference,
    "command_agent": Command,
    "outcome": Outcome,
    "error": ErrorRecord,
    "usage": Usage,
    "state": State,
    "event_kind": Kind,
    "not_stored": NotStored,
    "awaited_result": Awaited,
    "quota": Quota,
    "rate": Rate,
    "breaker": Breaker,
    "load": Load,
    "gate": Gate,
    "auto_slots": Auto,
    "open_breaker": OpenBreaker,
    "closed_gate": ClosedGate,
    "loaded_machine": LoadedMachine,
}
"""The class behind each name, for the records of the model and of the journal itself."""


def encoder(name: str, kind: type) -> Encoder:
    """An encoder for one of our types."""
    schema = RECORDS[name]
    tag, fields, attributes = schema.tag, schema.fields, schema.attributes
    if not fields and not hasattr(kind, "_fields"):
        return lambda _, value: {"$": tag, "of": value._value_}
    defaults = _defaults(schema, kind)

    def encode(walk: Walk, value: Any) -> Any:
        of = {}
        for field, attribute, default in zip(fields, attributes, defaults, strict=True):
            found = getattr(value, attribute)
            if found is not default:
                of[field] = walk.tree(found)
        return {"$": tag, "of": of}

    return encode


def writer(name: str, kind: Any) -> Callable[[Any], str | None]:
    """A faster way to write named tuples of simple fields."""
    schema = RECORDS[name]
    if schema.attributes != kind._fields:
        raise TypeError(f"{kind} has the fields {kind._fields}, and {name!r} {schema.attributes}")
    return record_writer(schema.tag, schema.fields, _defaults(schema, kind), _STATES)


_STATES = {state: as_json({"$": RECORDS["state"].tag, "of": state.value}) for state in State}


def _defaults(schema: RecordSchema, kind: Any) -> list[Any]:
    if hasattr(kind, "_fields"):
        return [kind._field_defaults.get(name, _UNSET) for name in schema.attributes]
    found = {each.name: each.default for each in dataclasses.fields(kind)}
    defaults = [found[name] for name in schema.attributes]
    return [_UNSET if each is dataclasses.MISSING else each for each in defaults]


def decoder(name: str, version: int, kind: type | None) -> Callable[[Any], Any]:
    """A decoder for one version of a record. Without a class, the record is read as plain data."""
    schema = RECORDS[name]
    attributes = dict(zip(schema.fields, schema.attributes, strict=True))
    renamed = any(field != attribute for field, attribute in attributes.items())

    def decode(of: Any) -> Any:
        of = up_to_date(name, version, of)
        if kind is None:
            return of
        try:
            if not isinstance(of, dict):
                return kind(of)
            named = {attributes[field]: each for field, each in of.items()} if renamed else of
            return kind(**named)
        except (KeyError, TypeError, ValueError):
            return of

    return decode


def stand_in(walk: Walk, value: Any, kind: str) -> Any:
    """Write the stand-in for a value that cannot be stored."""
    try:
        task_id = getattr(value, "task_id", None)
    except Exception:  # noqa: BLE001 - whatever its `__getattr__` raises: it is not a handle
        task_id = None
    return walk.tree(Awaited(task_id) if type(task_id) is str else NotStored(kind))

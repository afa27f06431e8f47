"""How our own records are written: by name, and without what is at its default."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.journal.schema.plain_json import as_json, record_writer
from interlock.model.claim import Claim, Mode
from interlock.model.event import Kind
from interlock.model.limits import Breaker, Quota, Rate, Retry
from interlock.model.load import Auto, Gate, Load
from interlock.model.outcome import ErrorRecord, Outcome, State
from interlock.model.task import Task
from interlock.model.template import Reference, Template
from interlock.model.throttled import ClosedGate, LoadedMachine, OpenBreaker
from interlock.model.usage import Usage

if TYPE_CHECKING:
    from interlock.journal.schema.codec import Encoder, Walk

_UNSET = object()


class NotStored(NamedTuple):
    """Stands for a value that could not be stored: `path` says which part of it was in the way."""

    kind: str
    path: str = ""


class Awaited(NamedTuple):
    """Stands for the result of another task: a handle among the arguments."""

    task_id: str


OURS: tuple[type, ...] = (
    Claim,
    Mode,
    Kind,
    Quota,
    Rate,
    Retry,
    Breaker,
    Load,
    Gate,
    Auto,
    OpenBreaker,
    ClosedGate,
    LoadedMachine,
    ErrorRecord,
    Outcome,
    State,
    Task,
    Template,
    Reference,
    Usage,
    NotStored,
    Awaited,
)


def encoder(kind: type) -> Encoder:
    """How to write records of one of our types."""
    tag = kind.__name__
    if hasattr(kind, "_fields"):
        names, defaults = _named(kind)
    elif dataclasses.is_dataclass(kind):
        fields = [each for each in dataclasses.fields(kind) if each.init]
        fields = fields or [each for each in dataclasses.fields(kind) if each.name[0] != "_"]
        names = tuple(each.name for each in fields)
        defaults = [
            _UNSET if each.default is dataclasses.MISSING else each.default for each in fields
        ]
    else:
        return lambda _, value: {"$": tag, "of": value._value_}

    def encode(walk: Walk, value: Any) -> Any:
        of = {}
        for name, default in zip(names, defaults, strict=True):
            field = getattr(value, name)
            if field is not default:
                of[name] = walk.tree(field)
        return {"$": tag, "of": of}

    return encode


def writer(kind: Any) -> Callable[[Any], str | None]:
    """The short way for named tuples."""
    return record_writer(kind.__name__, *_named(kind), _STATES)


_STATES = {state: as_json({"$": "State", "of": state.value}) for state in State}


def _named(kind: Any) -> tuple[tuple[str, ...], list[Any]]:
    names: tuple[str, ...] = kind._fields
    return names, [kind._field_defaults.get(name, _UNSET) for name in names]


def restored(kind: type, of: Any) -> Any:
    """The record again. One of a later version, with fields we do not know, stays plain data."""
    try:
        return kind(**of) if isinstance(of, dict) else kind(of)
    except (TypeError, ValueError):
        return of


def stand_in(walk: Walk, value: Any, kind: str) -> Any:
    """What is written for something that cannot be."""
    try:
        task_id = getattr(value, "task_id", None)
    except Exception:  # noqa: BLE001 - whatever its `__getattr__` raises: it is no handle
        task_id = None
    return walk.tree(Awaited(task_id) if type(task_id) is str else NotStored(kind))

"""The JSON forms of user types of a known shape: dataclasses, enums, named tuples, Pydantic models.

They are written field by field. Reading one sets its fields without calling `__init__`: that, and
aliases or validators, could make something else of the same fields.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any

from interlock.journal.schema import pydantic_models as models
from interlock.journal.schema.builtin_types import SIMILAR
from interlock.model.stable_names import stable_name_of, type_of_stable_name

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Encoder, Walk

_WITH_CONTENT = (*(base for base, _ in SIMILAR), deque, bytearray)


def name_of(kind: Any) -> str:
    """The stable name of what is Interlock's own; `module:qualified name` of all else.

    Built-in types have their name alone.
    """
    stable = stable_name_of(kind)
    if stable is not None:
        return stable
    module = getattr(kind, "__module__", "")
    name: str = getattr(kind, "__qualname__", None) or repr(kind)
    return name if module == "builtins" else f"{module}:{name}"


def encoder(kind: type) -> Encoder | None:
    """An encoder for a type; None if it has no known shape."""
    name = name_of(kind)
    if issubclass(kind, Flag):
        return lambda _, value: {"$": name, "of": value._value_}  # combinations have no name
    if issubclass(kind, Enum):
        return lambda _, value: {"$": name, "of": value._name_}
    if models.is_model(kind):
        return lambda walk, value: {"$": name, **models.encode(walk, value)}
    if dataclasses.is_dataclass(kind):
        # A dataclass that is also a list, for example, holds more than its fields.
        return None if issubclass(kind, _WITH_CONTENT) else _dataclass
    if _is_named_tuple(kind):
        return _named_tuple
    for base, found in SIMILAR:
        if issubclass(kind, base):
            return _similar(found)
    return None


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _similar(found: Encoder) -> Encoder:
    def encode(walk: Walk, value: Any) -> Any:
        if getattr(value, "__dict__", None):
            return walk.refused(value)  # it holds more than its base does
        return found(walk, value)

    return encode


def _dataclass(walk: Walk, value: Any) -> Any:
    names = [each.name for each in dataclasses.fields(value)]
    written = {
        "$": name_of(type(value)),
        "of": walk.fields((name, getattr(value, name)) for name in names),
    }
    also = {
        name: each for name, each in getattr(value, "__dict__", {}).items() if name not in names
    }
    if also:
        written["also"] = walk.fields(also.items())
    return written


def _named_tuple(walk: Walk, value: Any) -> Any:
    return {"$": name_of(type(value)), "of": walk.fields(zip(value._fields, value, strict=True))}


def restored(name: str, written: dict[str, Any]) -> Any:
    """The object, if its class is loaded and the data still fits; otherwise the plain data."""
    kind, of = _loaded(name), written["of"]
    try:
        if kind is None:
            return of
        if issubclass(kind, Flag):
            return kind(of)
        if issubclass(kind, Enum):
            return kind[of]
        if models.is_model(kind):
            return models.restored(kind, written)
        if dataclasses.is_dataclass(kind):
            return _dataclass_of(kind, of, written.get("also", {}))
        if _is_named_tuple(kind):
            return _named_tuple_of(kind, of)
    except Exception:  # noqa: BLE001 - the class has changed since: plain data
        return of
    return of


def _dataclass_of(kind: Any, of: dict[str, Any], also: dict[str, Any]) -> Any:
    fields = {each.name: each for each in dataclasses.fields(kind)}
    if not of.keys() <= fields.keys():
        raise ValueError("the class has lost a field")
    made = kind.__new__(kind)
    for name, each in fields.items():
        object.__setattr__(made, name, of[name] if name in of else _default(each))
    for name, value in also.items():
        object.__setattr__(made, name, value)
    return made


def _default(field: dataclasses.Field[Any]) -> Any:
    """The default of a field that was added since."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise ValueError("the class has a new field")
    return field.default


def _named_tuple_of(kind: Any, of: dict[str, Any]) -> Any:
    if not of.keys() <= set(kind._fields):
        raise ValueError("the class has lost a field")
    values = {**kind._field_defaults, **of}
    return tuple.__new__(kind, [values[name] for name in kind._fields])


def _loaded(name: str) -> type | None:
    stable = type_of_stable_name(name)
    if stable is not None:
        return stable
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None

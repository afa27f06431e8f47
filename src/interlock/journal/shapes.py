"""Types of the user that have a known shape: dataclasses, enums, named tuples, Pydantic models."""

from __future__ import annotations

import dataclasses
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any

from interlock.journal.everyday import SIMILAR

if TYPE_CHECKING:
    from interlock.journal.codec import Encoder, Walk


def name_of(kind: Any) -> str:
    """`module:qualified name`; types that everybody knows go by their name alone."""
    module = getattr(kind, "__module__", "")
    name: str = getattr(kind, "__qualname__", None) or repr(kind)
    return name if module == "builtins" else f"{module}:{name}"


def encoder(kind: type) -> Encoder | None:
    """How to write values of a type; None if that is not known."""
    if issubclass(kind, Enum):
        return lambda _, value: {"$": name_of(kind), "of": value.name}
    if _is_model(kind):
        return _model
    if dataclasses.is_dataclass(kind):
        return _dataclass
    if _is_named_tuple(kind):
        return _named_tuple
    for base, found in SIMILAR:
        if issubclass(kind, base):
            return found
    return None


def _is_model(kind: type) -> bool:
    # By its methods: Pydantic is not ours to import, and may not be there.
    return hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump")


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _model(walk: Walk, value: Any) -> Any:
    try:
        dumped = value.model_dump(mode="json")
    except Exception as error:  # noqa: BLE001 - whatever the user's serialisers raise
        return walk.refused(value, f"a model that could not be dumped ({error})")
    return {"$": name_of(type(value)), "of": walk.tree(dumped)}


def _dataclass(walk: Walk, value: Any) -> Any:
    named = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
    return {"$": name_of(type(value)), "of": walk.fields(named)}


def _named_tuple(walk: Walk, value: Any) -> Any:
    return {"$": name_of(type(value)), "of": walk.fields(zip(value._fields, value, strict=True))}


def restored(name: str, of: Any) -> Any:
    """The object again if its class is loaded and still fits, otherwise the plain data."""
    kind = _loaded(name)
    try:
        if kind is None:
            return of
        if issubclass(kind, Enum):
            return kind[of]
        if _is_model(kind):
            return kind.model_validate(of)  # type: ignore[attr-defined]
        if dataclasses.is_dataclass(kind):
            return _dataclass_of(kind, of)
        if _is_named_tuple(kind):
            return kind(**of)
    except Exception:  # noqa: BLE001 - the class has changed since; its data has not
        return of
    return of


def _dataclass_of(kind: type, of: dict[str, Any]) -> Any:
    fields = {each.name: each for each in dataclasses.fields(kind)}
    made = kind(**{name: value for name, value in of.items() if fields[name].init})
    for name, value in of.items():
        if not fields[name].init:
            object.__setattr__(made, name, value)
    return made


def _loaded(name: str) -> type | None:
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None

"""The JSON form of Pydantic models. Pydantic is not imported here, and may not be installed.

    {"$": "app:Report", "of": {"title": "x"}, "unset": ["pages"]}     field by field
    {"$": "app:Link", "of": {"url": "https://..."}, "dumped": true}   as the model writes itself

A field may be of a type that only Pydantic can serialise (a URL). Then the model dumps itself, if
that is lossless: it is not with excluded fields or hidden secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Walk


def is_model(kind: type) -> bool:
    """Whether a class is a Pydantic model, judged by its methods."""
    return hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump")


def encode(walk: Walk, value: Any) -> dict[str, Any]:
    """Write a model, without the name of its class."""
    lenient, walk.lenient = walk.lenient, False
    try:
        return _fields(walk, value)
    except Exception:
        dumped = _dumped(walk, value)
        if dumped is not None:
            return dumped
        if not lenient:
            raise
    finally:
        walk.lenient = lenient
    return _fields(walk, value)


def _fields(walk: Walk, value: Any) -> dict[str, Any]:
    # The names cannot collide: private attributes begin with an underscore, and fields do not.
    # Anything else in its dict is derived from these (a cached property).
    fields = {name: each for name, each in vars(value).items() if name in type(value).model_fields}
    every = {
        **fields,
        **(value.__pydantic_extra__ or {}),
        **(value.__pydantic_private__ or {}),
    }
    written: dict[str, Any] = {"of": walk.fields(every.items())}
    unset = [name for name in fields if name not in value.__pydantic_fields_set__]
    if unset:
        written["unset"] = unset
    return written


def _dumped(walk: Walk, value: Any) -> dict[str, Any] | None:
    """The model as it dumps itself; None if that would lose something."""
    try:
        dumped = value.model_dump(mode="json", by_alias=True, round_trip=True)
        if type(value).model_validate(dumped) != value:
            return None
        return {"of": walk.tree(dumped), "dumped": True}
    except Exception:  # noqa: BLE001 - whatever serialisers and validators of the user raise
        return None


def restored(kind: Any, written: dict[str, Any]) -> Any:
    """Read a model; raises if it no longer fits its class."""
    of = written["of"]
    if "dumped" in written:
        return kind.model_validate(of)
    known = kind.model_fields
    fields = {name: value for name, value in of.items() if name in known}
    private = {name: value for name, value in of.items() if name in kind.__private_attributes__}
    extra = {name: value for name, value in of.items() if name not in {*fields, *private}}
    for name, field in known.items():
        if name not in fields:
            if field.is_required():
                raise ValueError("the class has a new field")
            fields[name] = field.get_default(call_default_factory=True)
    takes_extra = kind.model_config.get("extra") == "allow"
    if extra and not takes_extra:
        raise ValueError("the class has lost a field")
    made = kind.__new__(kind)
    object.__setattr__(made, "__dict__", fields)
    unset = {*written.get("unset", ()), *(known.keys() - of.keys())}
    object.__setattr__(made, "__pydantic_fields_set__", {*fields, *extra} - unset)
    object.__setattr__(made, "__pydantic_extra__", extra if takes_extra else None)
    has_private = bool(kind.__private_attributes__)
    object.__setattr__(made, "__pydantic_private__", private if has_private else None)
    return made

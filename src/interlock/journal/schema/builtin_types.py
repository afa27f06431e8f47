"""The JSON forms of the types of the standard library."""

from __future__ import annotations

import base64
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from interlock.journal.schema.encoding import Encoder, Walk


def _float(_: Walk, value: float) -> Any:
    return value if math.isfinite(value) else {"$": "float", "of": repr(float(value))}


def _list(walk: Walk, value: Any) -> Any:
    return walk.items(value)


def _dict(walk: Walk, value: Mapping[Any, Any]) -> Any:
    for key in value:
        if type(key) is not str or key == "$":
            break
    else:
        return walk.fields(value.items())
    # JSON would turn 1 into "1" silently, and `$` marks our own objects.
    return {"$": "dict", "of": [walk.items(pair) for pair in value.items()]}


def _pairs(name: str) -> Encoder:
    return lambda walk, value: {"$": name, "of": [walk.items(pair) for pair in value.items()]}


def _default_dict(walk: Walk, value: defaultdict[Any, Any]) -> Any:
    made = getattr(value.default_factory, "__name__", "")
    if value.default_factory is not None and _FACTORIES.get(made) is not value.default_factory:
        return walk.refused(value, "a defaultdict with a custom factory")
    return {"$": "defaultdict", "of": [made, _pairs("")(walk, value)["of"]]}


_FACTORIES: dict[str, Any] = {each.__name__: each for each in (list, dict, set, int, float, str)}


def _sequence(name: str) -> Encoder:
    return lambda walk, value: {"$": name, "of": walk.items(value)}


def _set(name: str) -> Encoder:
    # In an order that does not depend on the hash seed: fingerprints depend on it.
    return lambda walk, value: {"$": name, "of": sorted(walk.items(value), key=repr)}


def _text(name: str, as_text: Callable[[Any], str]) -> Encoder:
    return lambda _, value: {"$": name, "of": as_text(value)}


def _bytes(name: str) -> Encoder:
    return lambda walk, value: {
        "$": name,
        "of": base64.b64encode(walk.redaction.bytes(bytes(value))).decode("ascii"),
    }


_PATH = _text("path", str)

ENCODERS: dict[type, Encoder] = {
    float: _float,
    list: _list,
    deque: lambda walk, value: {"$": "deque", "of": [walk.items(value), value.maxlen]},
    dict: _dict,
    OrderedDict: _pairs("OrderedDict"),
    Counter: _pairs("Counter"),
    defaultdict: _default_dict,
    MappingProxyType: _dict,
    tuple: _sequence("tuple"),
    set: _set("set"),
    frozenset: _set("frozenset"),
    bytes: _bytes("bytes"),
    bytearray: _bytes("bytearray"),
    datetime: _text("datetime", datetime.isoformat),
    date: _text("date", date.isoformat),
    time: _text("time", time.isoformat),
    timedelta: lambda _, value: {
        "$": "timedelta",
        "of": [value.days, value.seconds, value.microseconds],
    },
    Decimal: _text("decimal", str),
    Fraction: _text("fraction", str),
    UUID: _text("uuid", str),
    PosixPath: _PATH,
    WindowsPath: _PATH,
    PurePosixPath: _text("pure_posix_path", str),
    PureWindowsPath: _text("pure_windows_path", str),
}

DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "dict": lambda of: {key: value for key, value in of},  # noqa: C416 - pairs come as lists
    "deque": lambda of: deque(*of),
    "OrderedDict": OrderedDict,
    "Counter": lambda of: Counter(dict(of)),
    "defaultdict": lambda of: defaultdict(_FACTORIES.get(of[0]), of[1]),
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "bytes": base64.b64decode,
    "bytearray": lambda of: bytearray(base64.b64decode(of)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda of: timedelta(*of),
    "decimal": Decimal,
    "fraction": Fraction,
    "uuid": UUID,
    "path": Path,
    "pure_posix_path": PurePosixPath,
    "pure_windows_path": PureWindowsPath,
}

SIMILAR: tuple[tuple[type, Encoder], ...] = (
    (str, lambda _, value: str.__str__(value)),
    (int, lambda _, value: int(value)),
    (float, lambda walk, value: _float(walk, float(value))),
    (bytes, ENCODERS[bytes]),
    (PurePath, _PATH),
    (datetime, ENCODERS[datetime]),
    (tuple, ENCODERS[tuple]),
    (list, _list),
    (dict, _dict),
    (set, ENCODERS[set]),
    (frozenset, ENCODERS[frozenset]),
)
"""A subclass of one of these that adds no data is stored as its base."""

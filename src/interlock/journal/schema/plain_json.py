"""Fast JSON text: a journal writes a handful of small records for every task.

The C encoder of the standard library is made once here, and not for each value. Where there is
none, the public `JSONEncoder` does the same.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_fallback = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
)
_make = getattr(json.encoder, "c_make_encoder", None)
_quote: Callable[[str], str] = json.encoder.encode_basestring


def _encoder() -> Callable[[Any], str]:
    if _make is None:
        return _fallback.encode
    in_c = _make(None, _fallback.default, _quote, None, ":", ",", False, False, False)
    return lambda tree: "".join(in_c(tree, 0))


as_json = _encoder()
"""The JSON text of a tree of dicts with text as keys, lists, text, finite numbers, True, False and
None. It may hold half a surrogate pair, which UTF-8 cannot."""


def in_utf8(tree: Any, text: str) -> str:
    """The text of a tree, in a form that UTF-8 can encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return json.dumps(tree, allow_nan=False, separators=(",", ":"))
    return text


def record_writer(
    tag: str, names: Sequence[str], defaults: Sequence[Any], words: Mapping[Any, str]
) -> Callable[[Any], str | None]:
    """A writer for records of texts, integers and some known values; it returns None for others."""
    head = f'{{"$":{_quote(tag)},"of":{{'
    fields = [(f"{_quote(name)}:", default) for name, default in zip(names, defaults, strict=True)]

    kinds = {type(word) for word in words}

    def write(record: Any) -> str | None:
        parts = []
        for (name, default), value in zip(fields, record, strict=True):
            if value is default:
                continue
            kind = type(value)
            if kind is str and value.isascii():
                parts.append(name + _quote(value))
            elif kind is int and -_SMALL < value < _SMALL:
                parts.append(name + repr(value))
            else:
                word = words.get(value) if kind in kinds else None
                if word is None:
                    return None
                parts.append(name + word)
        return f"{head}{','.join(parts)}}}}}"

    return write


_SMALL = 1 << 63

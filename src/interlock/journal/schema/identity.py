"""Records as fingerprints see them: under their first names, for ever.

A fingerprint is kept in the journal and compared when a run is resumed, by whatever version of
Interlock does that. So what goes into one must not change with the names and versions that are
written today. This module takes JSON back to the names that each record was first written under.
"""

from __future__ import annotations

import re

from interlock.journal.schema.names import FIRST_EVENT_NAMES, RECORDS

MODES = {"exclusive": "alone"}
"""Values of `Mode` that were first written as another word."""

_TAG = re.compile(r'"\$":"([a-z][a-z_]*(?:/\d+)?)"')
"""Inside a JSON string every quote is escaped, so this finds tags and nothing else."""
_ENUM = re.compile(r'"\$":"(Mode|Kind)","of":"(\w+)"')

_FIRST_NAMES = {each.tag: each.first_name for each in RECORDS.values()}
_FIRST_VALUES = {
    "Mode": MODES,
    "Kind": {today: first for first, today in FIRST_EVENT_NAMES.items()},
}


def under_first_names(text: str) -> str:
    """JSON text with the first names of all records in it."""
    if '"$":"' not in text:
        return text
    return _ENUM.sub(_first_value, _TAG.sub(_first_tag, text))


def _first_tag(found: re.Match[str]) -> str:
    tag = found[1]
    return f'"$":"{_FIRST_NAMES.get(tag, tag)}"'


def _first_value(found: re.Match[str]) -> str:
    kind, value = found[1], found[2]
    return f'"$":"{kind}","of":"{_FIRST_VALUES[kind].get(value, value)}"'

"""How records of earlier versions become today's.

An upcaster takes the fields of one version and returns those of the next. Records inside it have
been brought up to date before. Upcasters are never removed: some journal may still need them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.journal.schema.names import FIRST_EVENT_NAMES, RECORDS

_RETRY_LABELS = ("again_of", "retry_of")
_MODES = {"alone": "exclusive"}


def _task_2(fields: dict[str, Any]) -> dict[str, Any]:
    """`alone` became `exclusive`, and the label `again_of` became `retry_of`."""
    changed = dict(fields)
    if "claims" in fields:
        changed["claims"] = [
            [resource, _mode_2(mode), amount] for resource, mode, amount in fields["claims"]
        ]
    if "labels" in fields:
        changed["labels"] = labels_2(fields["labels"])
    return changed


def _mode_2(value: str) -> str:
    return _MODES.get(value, value)


def _event_kind_2(value: str) -> str:
    return FIRST_EVENT_NAMES.get(value, value)


def _refuse_2(fields: dict[str, Any]) -> dict[str, Any]:
    """A stimulus went by the name of its class."""
    names = {each.first_name: each.name for each in RECORDS.values()}
    stimulus = fields["stimulus"]
    return {**fields, "stimulus": names.get(stimulus, stimulus)}


def labels_2(labels: dict[str, str]) -> dict[str, str]:
    """The labels of a task of version 1, also as the table of tasks has kept them."""
    old, new = _RETRY_LABELS
    return {new if name == old else name: value for name, value in labels.items()}


UPCASTERS: dict[tuple[str, int], Callable[[Any], Any]] = {
    ("task", 1): _task_2,
    ("mode", 1): _mode_2,
    ("event_kind", 1): _event_kind_2,
    ("refuse", 1): _refuse_2,
}
"""By the name of the record and the version that goes in."""


def up_to_date(name: str, version: int, fields: Any) -> Any:
    """What a record of some version is today."""
    for each in range(version, RECORDS[name].version):
        fields = UPCASTERS[name, each](fields)
    return fields

"""The kernel's classes behind the names in a journal.

`journal/schema/names.py` says what a journal holds and under which names; it knows no kernel. This
is the other half: which class is meant. After a class was renamed, this table is all that changes.
"""

from __future__ import annotations

from interlock.journal.schema.names import RECORDS
from interlock.kernel import instructions as do
from interlock.kernel import stimuli as s
from interlock.model.event import COMMAND_NAMES
from interlock.runtime.turn import SubmissionTerms

_STIMULI: dict[str, type] = {
    name: kind for kind, name in s.STIMULUS_NAMES.items() if name in RECORDS
}
"""All but those that are written as several events."""

RECORDED_TYPES: dict[str, type] = {
    **_STIMULI,
    "submit_together": SubmissionTerms,
    "task_past": s.Past,
    "start": do.Start,
    "stop": do.Stop,
    "change": do.Change,
    "grant_wait": do.Resume,
    "deny_wait": do.Deny,
    "refuse": do.Refused,
}
"""For a `Codec` or a journal that reads and writes the events of runs."""

COMMAND_NAMES.update({kind: name for name, kind in RECORDED_TYPES.items()})
